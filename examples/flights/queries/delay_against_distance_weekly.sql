-- How many minutes a mile costs or wins back: correlation and slope for each airport.
SELECT window.start AS monday, origin,
       corr(delay, distance) AS correlation, regr_slope(delay, distance) AS minutes_per_mile
FROM flights
GROUP BY window(date, '7 days', '7 days', '4 days'), origin
HAVING count(DISTINCT destination) >= 5
