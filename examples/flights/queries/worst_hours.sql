-- The two dozen hours with the most flights that ended more than an hour late.
SELECT window.start AS hour, count_if(delay > 60) AS very_late, count(*) AS flights
FROM flights
GROUP BY window(date, '1 hour')
ORDER BY very_late DESC, hour
LIMIT 24
