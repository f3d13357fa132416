-- The report at the end: everything about each airport in one row.
SELECT origin, count(*) AS flights, count(DISTINCT destination) AS destinations, sum(distance) AS miles,
       avg(delay) AS mean_delay, median(delay) AS median_delay, count_if(delay <= 15) / count(*) AS on_time
FROM flights
GROUP BY origin
