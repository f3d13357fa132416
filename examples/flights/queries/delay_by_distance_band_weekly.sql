-- Do short hops or long hauls run late? Delay by band of distance.
SELECT window.start AS monday,
       CASE WHEN distance < 300 THEN 'short' WHEN distance < 1000 THEN 'medium' ELSE 'long' END AS band,
       avg(delay) AS mean_delay, count_if(delay > 60) AS very_late, count(*) AS flights
FROM flights
GROUP BY window(date, '7 days', '7 days', '4 days'),
         CASE WHEN distance < 300 THEN 'short' WHEN distance < 1000 THEN 'medium' ELSE 'long' END
