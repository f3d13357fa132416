-- How each shift at the hubs did; shifts change at 06:00, 14:00 and 22:00.
SELECT window.start AS shift, origin,
       avg(CASE WHEN delay <= 15 THEN 1 ELSE 0 END) AS on_time, count(*) AS flights
FROM flights
WHERE origin IN ('ORD', 'DFW', 'ATL', 'STL', 'DTW', 'MSP', 'CLT', 'PIT', 'DEN', 'IAH')
GROUP BY window(date, '8 hours', '8 hours', '6 hours'), origin
