-- Boston, New York, Washington: the shuttles, where every quarter of an hour counts.
SELECT window.start AS start, origin, destination,
       count(*) AS flights, avg(CASE WHEN delay <= 15 THEN 1 ELSE 0 END) AS on_time
FROM flights
WHERE origin IN ('BOS', 'LGA', 'DCA') AND destination IN ('BOS', 'LGA', 'DCA')
GROUP BY window(date, '2 hours'), origin, destination
