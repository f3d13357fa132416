-- Peering down to the conversation: what stands behind a cell of the AS matrix.
SELECT window.start AS start,
       srcaddr, dstaddr, src_as, dst_as, input, output, srcport, dstport, protocol,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcaddr, dstaddr, src_as, dst_as, input, output, srcport, dstport, protocol
