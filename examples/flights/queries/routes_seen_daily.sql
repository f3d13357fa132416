-- The size of the network: how many routes, airports and flights each day saw.
SELECT window.start AS day,
       count(DISTINCT origin, destination) AS routes, count(DISTINCT origin) AS airports, count(*) AS flights
FROM flights
GROUP BY window(date, '1 day')
