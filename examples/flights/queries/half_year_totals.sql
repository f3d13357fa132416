-- The same for the whole country: one row.
SELECT min(date) AS first_departure, max(date) AS last_departure,
       count(*) AS flights, sum(distance) AS miles, avg(delay) AS mean_delay
FROM flights
