-- Summer afternoons at the southern hubs, when storms stop the ramp: delays from noon to eight.
SELECT window.start AS start, origin, avg(delay) AS mean_delay, max(delay) AS worst
FROM flights
WHERE month(date) >= 5 AND origin IN ('DFW', 'ATL', 'IAH', 'MCO', 'MIA')
  AND hour(date) >= 12 AND hour(date) < 20
GROUP BY window(date, '4 hours'), origin
