-- Where delay adds up over four weeks, looked at every Monday.
SELECT window.start AS start, destination, sum(delay) FILTER (WHERE delay > 15) / 60 AS hours_lost
FROM flights
GROUP BY window(date, '28 days', '7 days', '4 days'), destination
HAVING count_if(delay > 15) > 0
