-- Traffic between two airports whichever way it goes, over two weeks, every week.
SELECT window.start AS start, least(origin, destination) AS one, greatest(origin, destination) AS other,
       count(*) AS flights, count_if(origin < destination) AS outbound, avg(delay) AS mean_delay
FROM flights
GROUP BY window(date, '14 days', '7 days', '4 days'), least(origin, destination), greatest(origin, destination)
