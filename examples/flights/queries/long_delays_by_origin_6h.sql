-- Where crews will run out of duty time: delays of one to three hours.
SELECT window.start AS start, origin, count(*) AS flights, sum(delay) AS minutes
FROM flights
WHERE delay > 60 AND delay <= 180
GROUP BY window(date, '6 hours'), origin
