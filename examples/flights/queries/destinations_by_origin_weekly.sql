-- How well connected each airport is, and how far it reaches.
SELECT window.start AS monday, origin, count(DISTINCT destination) AS destinations, max(distance) AS farthest
FROM flights
GROUP BY window(date, '7 days', '7 days', '4 days'), origin
