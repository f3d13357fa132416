-- Conversations by service, with when each was first and last seen.
SELECT window.start AS start,
       srcaddr, dstaddr, srcport, dstport, protocol,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows,
       min(first) AS first, max(last) AS last
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcaddr, dstaddr, srcport, dstport, protocol
