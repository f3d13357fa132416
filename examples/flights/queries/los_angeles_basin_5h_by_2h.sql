-- The five airports of the Los Angeles basin, which share one sky.
SELECT window.start AS start, origin, count(*) AS departures, avg(delay) AS mean_delay
FROM flights
WHERE origin IN ('LAX', 'BUR', 'ONT', 'SNA', 'LGB')
GROUP BY window(date, '5 hours', '2 hours'), origin
