-- Schedules with too much air in them: routes that are late once in twenty flights, or less.
SELECT origin, destination, avg(delay) AS mean_delay, count_if(delay > 15) AS late, count(*) AS flights
FROM flights
GROUP BY origin, destination
HAVING count(*) >= 200 AND count_if(delay > 15) * 20 <= count(*)
