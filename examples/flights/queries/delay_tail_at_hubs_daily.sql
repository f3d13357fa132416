-- How bad a bad day is: the slowest tenth and the slowest hundredth at the largest airports.
SELECT window.start AS day, origin, percentile_approx(delay, array(0.5, 0.9, 0.99)) AS delays
FROM flights
WHERE origin IN ('ORD', 'DFW', 'ATL', 'LAX', 'PHX')
GROUP BY window(date, '1 day'), origin
