-- What to print in the timetable: the middle and the ninth decile of each route's delay.
SELECT origin, destination,
       percentile(delay, 0.5) AS median_delay, percentile(delay, 0.9) AS p90, count(*) AS flights
FROM flights
GROUP BY origin, destination
HAVING count(*) >= 100
