-- Data quality: nobody lands two hours early, and more than twelve hours late deserves a second look.
SELECT window.start AS day, count_if(delay < 0) AS too_early, count_if(delay > 0) AS too_late
FROM flights
WHERE delay < -120 OR delay > 720
GROUP BY window(date, '1 day')
