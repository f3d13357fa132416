-- Did the day begin well? The first departures decide the rest.
SELECT window.start AS day, origin, count_if(delay <= 15) AS on_time, count(*) AS flights, max(delay) AS worst
FROM flights
WHERE hour(date) BETWEEN 5 AND 7
GROUP BY window(date, '1 day'), origin
