-- The duty manager's gauge: the last three hours, renewed every half hour.
SELECT window.start AS start, avg(delay) AS mean_delay, stddev(delay) AS deviation, count(*) AS flights
FROM flights
GROUP BY window(date, '3 hours', '30 minutes')
