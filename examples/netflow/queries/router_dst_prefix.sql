-- Where traffic goes: by destination prefix, its AS and the interface it left by.
SELECT window.start AS start,
       dst_subnet, dst_mask, output, dst_as,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows,
       min(first) AS first, max(last) AS last, sum(active) AS active
FROM flows
GROUP BY window(ts, '5 minutes'),
         dst_subnet, dst_mask, output, dst_as
