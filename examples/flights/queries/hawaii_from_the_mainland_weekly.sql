-- Long flights over water to the islands, by airport of arrival.
SELECT window.start AS monday, destination,
       count(*) AS flights, avg(delay) AS mean_delay, count(DISTINCT origin) AS origins
FROM flights
WHERE destination IN ('HNL', 'OGG', 'KOA', 'LIH') AND distance > 2000
GROUP BY window(date, '7 days', '7 days', '4 days'), destination
