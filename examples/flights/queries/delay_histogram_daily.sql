-- The shape of a day's delays in steps of a quarter of an hour.
SELECT window.start AS day, floor(delay / 15) * 15 AS minutes, count(*) AS flights
FROM flights
WHERE delay BETWEEN -60 AND 299
GROUP BY window(date, '1 day'), floor(delay / 15)
