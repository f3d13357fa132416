-- Which way each pair of hosts is routed: interfaces in and out, and the next hop.
SELECT window.start AS start,
       srcaddr, dstaddr, input, output, nexthop,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcaddr, dstaddr, input, output, nexthop
