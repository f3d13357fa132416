-- The call record of accounting: one row per conversation and class of service.
SELECT window.start AS start,
       srcaddr, dstaddr, srcport, dstport, protocol, tos,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows,
       min(first) AS first, max(last) AS last, sum(active) AS active
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcaddr, dstaddr, srcport, dstport, protocol, tos
