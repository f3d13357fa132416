-- The number every airport manager sees first: share of departures that arrived within 15 minutes of plan.
SELECT window.start AS day, origin,
       avg(CASE WHEN delay <= 15 THEN 1 ELSE 0 END) AS on_time, count(*) AS flights
FROM flights
GROUP BY window(date, '1 day'), origin
