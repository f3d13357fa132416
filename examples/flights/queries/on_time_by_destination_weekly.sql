-- Punctuality as the arriving airport sees it, in weeks from Monday to Sunday.
SELECT window.start AS monday, destination,
       count_if(delay <= 15) / count(*) AS on_time, count(*) AS flights
FROM flights
GROUP BY window(date, '7 days', '7 days', '4 days'), destination
