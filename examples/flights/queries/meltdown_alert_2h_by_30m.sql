-- The alarm: an airport where twenty departures of the last two hours ended more than an hour late.
SELECT window.start AS start, origin, count_if(delay > 60) AS very_late, count(*) AS flights
FROM flights
GROUP BY window(date, '2 hours', '30 minutes'), origin
HAVING count_if(delay > 60) >= 20
