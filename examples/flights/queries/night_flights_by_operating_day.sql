-- Red-eye flights; an operating day runs from four in the morning to four in the morning.
SELECT window.start AS operating_day, origin, destination, count(*) AS flights, avg(delay) AS mean_delay
FROM flights
WHERE hour(date) >= 22 OR hour(date) < 5
GROUP BY window(date, '1 day', '1 day', '4 hours'), origin, destination
