-- When to leave: punctuality by the hour of departure, over everything seen.
SELECT hour(date) AS hour, count_if(delay <= 15) / count(*) AS on_time, median(delay) AS median_delay
FROM flights
GROUP BY hour(date)
