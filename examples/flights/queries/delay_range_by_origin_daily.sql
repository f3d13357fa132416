-- Mean, spread and extremes of each airport's day.
SELECT window.start AS day, origin,
       avg(delay) AS mean_delay, stddev(delay) AS deviation, min(delay) AS best, max(delay) AS worst
FROM flights
GROUP BY window(date, '1 day'), origin
