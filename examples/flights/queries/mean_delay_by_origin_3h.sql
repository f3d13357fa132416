-- Where trouble builds up in the course of a day.
SELECT window.start AS start, origin, avg(delay) AS mean_delay, count(*) AS flights
FROM flights
GROUP BY window(date, '3 hours'), origin
