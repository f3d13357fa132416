-- The mix on the wire: TCP, UDP, ICMP and the rest.
SELECT window.start AS start,
       protocol,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         protocol
