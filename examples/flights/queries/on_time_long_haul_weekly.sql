-- Punctuality of flights beyond 1,500 miles, which have room to make up time in the air.
SELECT window.start AS monday, origin,
       avg(CASE WHEN delay <= 15 THEN 1 ELSE 0 END) AS on_time, avg(distance) AS miles
FROM flights
WHERE distance > 1500
GROUP BY window(date, '7 days', '7 days', '4 days'), origin
