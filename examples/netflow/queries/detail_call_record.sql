-- Call records with the interfaces, to bill or to trace a conversation on its link.
SELECT window.start AS start,
       srcaddr, dstaddr, srcport, dstport, protocol, tos, input, output,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows,
       min(first) AS first, max(last) AS last, sum(active) AS active
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcaddr, dstaddr, srcport, dstport, protocol, tos, input, output
