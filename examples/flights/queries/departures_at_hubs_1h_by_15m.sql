-- The rolling hour against which a hub's declared capacity is checked.
SELECT window.start AS start, origin, count(*) AS departures
FROM flights
WHERE origin IN ('ORD', 'DFW', 'ATL', 'LAX', 'LGA', 'DCA', 'JFK', 'EWR')
GROUP BY window(date, '1 hour', '15 minutes'), origin
