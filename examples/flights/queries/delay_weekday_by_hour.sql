-- The grid of weekday (0 is Monday) and hour on which a planner paints the schedule.
SELECT weekday(date) AS weekday, hour(date) AS hour, avg(delay) AS mean_delay, count(*) AS flights
FROM flights
GROUP BY weekday(date), hour(date)
