-- Flights bound for each airport, and from how many others.
SELECT window.start AS day, destination, count(*) AS flights, count(DISTINCT origin) AS origins
FROM flights
GROUP BY window(date, '1 day'), destination
