-- The ten worst weeks that any large airport had.
SELECT window.start AS monday, origin, avg(delay) AS mean_delay, count_if(delay > 60) AS very_late
FROM flights
GROUP BY window(date, '7 days', '7 days', '4 days'), origin
HAVING count(*) >= 1000
ORDER BY mean_delay DESC, monday, origin
LIMIT 10
