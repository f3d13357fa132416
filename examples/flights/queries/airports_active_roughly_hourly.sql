-- How many airports are awake; a near count is enough for a gauge.
SELECT window.start AS hour, approx_count_distinct(origin) AS airports
FROM flights
GROUP BY window(date, '1 hour')
