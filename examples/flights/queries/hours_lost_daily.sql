-- Passengers' view: hours of delay in all, without the minutes won by early flights.
SELECT window.start AS day, sum(greatest(delay, 0)) / 60 AS hours_lost, sum(delay) / 60 AS net_hours
FROM flights
GROUP BY window(date, '1 day')
