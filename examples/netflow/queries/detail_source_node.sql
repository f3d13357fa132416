-- What each host sends, by service; a host with thousands of dstports is scanning.
SELECT window.start AS start,
       srcaddr, srcport, dstport, protocol,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcaddr, srcport, dstport, protocol
