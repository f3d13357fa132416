-- Snow on the east coast in the first quarter: flights to the seven airports that close together.
SELECT window.start AS start, destination, count_if(delay > 90) AS very_late, count(*) AS flights
FROM flights
WHERE date < TIMESTAMP_NTZ '2001-04-01 00:00:00'
  AND destination IN ('BOS', 'LGA', 'JFK', 'EWR', 'PHL', 'DCA', 'BWI')
GROUP BY window(date, '6 hours', '2 hours'), destination
