-- The trend line: each day's figure over the seven days before, so that weekends do not show.
SELECT window.end AS until, origin, count_if(delay <= 15) / count(*) AS on_time
FROM flights
GROUP BY window(date, '7 days', '1 day'), origin
