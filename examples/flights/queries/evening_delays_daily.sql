-- Late departures in the evening, when the last connections are lost.
SELECT window.start AS day, origin, count(*) AS late, avg(delay) AS mean_delay
FROM flights
WHERE hour(date) >= 18 AND delay > 30
GROUP BY window(date, '1 day'), origin
