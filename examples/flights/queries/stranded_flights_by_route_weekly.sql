-- Delays of more than three hours, the ones that passengers claim for.
SELECT window.start AS monday, origin, destination, count(*) AS flights, max(delay) AS longest
FROM flights
WHERE delay > 180
GROUP BY window(date, '7 days', '7 days', '4 days'), origin, destination
