-- When a runway can be closed for works: hours of the day with fewer than 200 departures in all.
SELECT origin, hour(date) AS hour, count(*) AS departures
FROM flights
WHERE origin IN ('ORD', 'DFW', 'ATL', 'LAX', 'PHX', 'DTW', 'MSP', 'LAS')
GROUP BY origin, hour(date)
HAVING count(*) < 200
