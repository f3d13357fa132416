-- Where traffic comes from: by source prefix, its AS and the interface it came in on.
SELECT window.start AS start,
       src_subnet, src_mask, input, src_as,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows,
       min(first) AS first, max(last) AS last, sum(active) AS active
FROM flows
GROUP BY window(ts, '5 minutes'),
         src_subnet, src_mask, input, src_as
