-- Friday to Monday traffic to the places where people go for fun.
SELECT window.start AS friday, destination, count(*) AS flights, avg(delay) AS mean_delay
FROM flights
WHERE destination IN ('LAS', 'MCO', 'FLL', 'RNO', 'SAN', 'MIA') AND weekday(date) IN (4, 5, 6, 0)
GROUP BY window(date, '7 days', '7 days', '1 day'), destination
