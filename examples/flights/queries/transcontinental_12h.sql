-- Coast to coast, both ways.
SELECT window.start AS start, origin, destination, count(*) AS flights, avg(delay) AS mean_delay
FROM flights
WHERE (origin IN ('LAX', 'SFO', 'SEA') AND destination IN ('JFK', 'EWR', 'BOS', 'IAD'))
   OR (destination IN ('LAX', 'SFO', 'SEA') AND origin IN ('JFK', 'EWR', 'BOS', 'IAD'))
GROUP BY window(date, '12 hours'), origin, destination
