-- The flight that the morning meeting will ask about; ties go to the last route in the alphabet.
SELECT window.start AS day, max(delay) AS delay,
       max_by(origin, struct(delay, origin, destination)) AS origin,
       max_by(destination, struct(delay, origin, destination)) AS destination
FROM flights
GROUP BY window(date, '1 day')
