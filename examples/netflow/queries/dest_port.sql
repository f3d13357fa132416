-- Which services are asked for: traffic by destination port.
SELECT window.start AS start,
       dstport,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         dstport
