-- Production: flights, miles and the mean stage length of each day.
SELECT window.start AS day, count(*) AS flights, sum(distance) AS miles, avg(distance) AS stage_length
FROM flights
GROUP BY window(date, '1 day')
