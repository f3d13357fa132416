-- The fifty busiest hours that any airport had: the peaks to plan for.
SELECT window.start AS hour, origin, count(*) AS departures
FROM flights
GROUP BY window(date, '1 hour'), origin
ORDER BY departures DESC, hour, origin
LIMIT 50
