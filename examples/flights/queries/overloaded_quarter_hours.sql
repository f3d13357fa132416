-- Quarters of an hour in which an airport sent off more than forty flights.
SELECT window.start AS start, origin, count(*) AS departures, avg(delay) AS mean_delay
FROM flights
GROUP BY window(date, '15 minutes'), origin
HAVING count(*) > 40
