-- What is being served: traffic by source port.
SELECT window.start AS start,
       srcport,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcport
