-- The typical passenger's delay, which a few stranded flights cannot move.
SELECT window.start AS monday, origin, median(delay) AS median_delay, count(*) AS flights
FROM flights
GROUP BY window(date, '7 days', '7 days', '4 days'), origin
