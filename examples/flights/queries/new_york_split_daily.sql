-- How New York's flights share out over its three airports, and how late each runs.
SELECT window.start AS day,
       count(*) FILTER (WHERE origin = 'JFK') AS jfk, avg(delay) FILTER (WHERE origin = 'JFK') AS jfk_delay,
       count(*) FILTER (WHERE origin = 'LGA') AS lga, avg(delay) FILTER (WHERE origin = 'LGA') AS lga_delay,
       count(*) FILTER (WHERE origin = 'EWR') AS ewr, avg(delay) FILTER (WHERE origin = 'EWR') AS ewr_delay
FROM flights
WHERE origin IN ('JFK', 'LGA', 'EWR')
GROUP BY window(date, '1 day')
