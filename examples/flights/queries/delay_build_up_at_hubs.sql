-- How a hub's delay grows from morning to night.
SELECT origin, hour(date) AS hour, avg(delay) AS mean_delay, count(*) AS flights
FROM flights
WHERE origin IN ('ORD', 'DFW', 'ATL', 'DEN', 'STL', 'EWR')
GROUP BY origin, hour(date)
