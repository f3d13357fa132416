-- The same over everything seen, in steps of 500 miles.
SELECT distance div 500 * 500 AS from_miles,
       avg(delay) AS mean_delay, stddev(delay) AS deviation, count(*) AS flights
FROM flights
GROUP BY distance div 500
