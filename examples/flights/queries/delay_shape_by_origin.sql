-- Airports whose delays are rare but huge (high kurtosis) need spare aircraft, not a longer schedule.
SELECT origin, avg(delay) AS mean_delay, skewness(delay) AS skewness, kurtosis(delay) AS kurtosis
FROM flights
GROUP BY origin
HAVING count(*) >= 1000
