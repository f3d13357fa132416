-- The twenty worst route-days of the period, among routes with at least eight flights that day.
SELECT window.start AS day, origin, destination, avg(delay) AS mean_delay, count(*) AS flights
FROM flights
GROUP BY window(date, '1 day'), origin, destination
HAVING count(*) >= 8
ORDER BY mean_delay DESC, day, origin, destination
LIMIT 20
