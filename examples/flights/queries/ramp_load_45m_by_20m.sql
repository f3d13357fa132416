-- Ground crews: departures within the three quarters of an hour that it takes to turn an aircraft round.
SELECT window.start AS start, origin, count(*) AS departures
FROM flights
WHERE origin IN ('ATL', 'CLT', 'CVG', 'MEM', 'PIT')
GROUP BY window(date, '45 minutes', '20 minutes'), origin
