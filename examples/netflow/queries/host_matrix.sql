-- Who talks to whom: traffic by pair of hosts.
SELECT window.start AS start,
       srcaddr, dstaddr,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcaddr, dstaddr
