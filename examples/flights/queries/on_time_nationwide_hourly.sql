-- One line for the wall display: how the whole network runs, hour by hour.
SELECT window.start AS hour,
       avg(CASE WHEN delay <= 15 THEN 1 ELSE 0 END) AS on_time, count(*) AS flights, avg(delay) AS mean_delay
FROM flights
GROUP BY window(date, '1 hour')
