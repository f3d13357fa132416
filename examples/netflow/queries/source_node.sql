-- Who sends the most: traffic by source address.
SELECT window.start AS start,
       srcaddr,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcaddr
