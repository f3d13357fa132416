-- Which conversations load a link: host pairs by interface and protocol.
SELECT window.start AS start,
       srcaddr, dstaddr, input, output, protocol,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcaddr, dstaddr, input, output, protocol
