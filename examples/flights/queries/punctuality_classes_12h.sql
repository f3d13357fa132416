-- Early, on time, late, very late: four counts for each half day.
SELECT window.start AS start,
       count_if(delay < 0) AS early, count_if(delay BETWEEN 0 AND 15) AS on_time,
       count_if(delay BETWEEN 16 AND 60) AS late, count_if(delay > 60) AS very_late
FROM flights
GROUP BY window(date, '12 hours')
