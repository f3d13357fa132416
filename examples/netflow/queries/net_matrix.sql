-- Capacity planning: traffic from subnet to subnet, with the interfaces it took.
SELECT window.start AS start,
       src_subnet, src_mask, input, dst_subnet, dst_mask, output,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         src_subnet, src_mask, input, dst_subnet, dst_mask, output
