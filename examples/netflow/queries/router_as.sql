-- Peering by link: AS to AS with the interfaces, as a router's AS cache gives it.
SELECT window.start AS start,
       src_as, dst_as, input, output,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows,
       min(first) AS first, max(last) AS last, sum(active) AS active
FROM flows
GROUP BY window(ts, '5 minutes'),
         src_as, dst_as, input, output
