-- The figures that have to be published: punctuality of every route, month by month.
SELECT date_trunc('MONTH', date) AS month, origin, destination,
       count_if(delay <= 15) AS on_time, count(*) AS flights
FROM flights
GROUP BY date_trunc('MONTH', date), origin, destination
