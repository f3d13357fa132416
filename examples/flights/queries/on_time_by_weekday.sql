-- Which weekday to fly (1 is Sunday), and how much is flown on it.
SELECT dayofweek(date) AS weekday, count_if(delay <= 15) / count(*) AS on_time, count(*) AS flights
FROM flights
GROUP BY dayofweek(date)
