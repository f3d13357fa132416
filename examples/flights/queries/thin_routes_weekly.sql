-- Routes flown three times or less in a week, candidates for the next revision of the schedule.
SELECT window.start AS monday, origin, destination, count(*) AS flights
FROM flights
GROUP BY window(date, '7 days', '7 days', '4 days'), origin, destination
HAVING count(*) <= 3
