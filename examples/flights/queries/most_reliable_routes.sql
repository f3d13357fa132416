-- The routes to advertise: the best share of flights on time, among those flown about twice a day.
SELECT origin, destination, count_if(delay <= 15) / count(*) AS on_time, count(*) AS flights
FROM flights
GROUP BY origin, destination
HAVING count(*) >= 360
ORDER BY on_time DESC, flights DESC, origin, destination
LIMIT 25
