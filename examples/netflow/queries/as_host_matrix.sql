-- Which host pairs make up the traffic between two autonomous systems, and for how long.
SELECT window.start AS start,
       srcaddr, dstaddr, src_as, dst_as,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows,
       min(first) AS first, max(last) AS last, sum(active) AS active
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcaddr, dstaddr, src_as, dst_as
