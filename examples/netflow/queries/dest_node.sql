-- Who receives the most: traffic by destination address.
SELECT window.start AS start,
       dstaddr,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         dstaddr
