-- The basis of airport charges: flights and miles by airport and calendar month.
SELECT year(date) AS year, month(date) AS month, origin, count(*) AS flights, sum(distance) AS miles
FROM flights
GROUP BY year(date), month(date), origin
