-- Flights that land well before their time need a gate that is not yet free.
SELECT window.start AS day, destination, count(*) AS early, min(delay) AS earliest
FROM flights
WHERE delay <= -15
GROUP BY window(date, '1 day'), destination
