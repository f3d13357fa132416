-- The banks of a hub: Dallas leaves in waves that ten-minute counts make visible.
SELECT window.start AS start, count(*) AS departures, count(DISTINCT destination) AS destinations
FROM flights
WHERE origin = 'DFW'
GROUP BY window(date, '10 minutes')
