-- Demand on the runways: departures an hour at each airport.
SELECT window.start AS hour, origin, count(*) AS departures
FROM flights
GROUP BY window(date, '1 hour'), origin
