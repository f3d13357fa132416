-- Peering: traffic from one autonomous system to another.
SELECT window.start AS start,
       src_as, dst_as,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         src_as, dst_as
