-- Traffic engineering: from prefix to prefix, with interfaces and autonomous systems.
SELECT window.start AS start,
       src_subnet, src_mask, dst_subnet, dst_mask, input, output, src_as, dst_as,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows,
       min(first) AS first, max(last) AS last, sum(active) AS active
FROM flows
GROUP BY window(ts, '5 minutes'),
         src_subnet, src_mask, dst_subnet, dst_mask, input, output, src_as, dst_as
