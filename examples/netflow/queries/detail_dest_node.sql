-- What each host is sent, by service; a server under a flood shows up here.
SELECT window.start AS start,
       dstaddr, srcport, dstport, protocol,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows
FROM flows
GROUP BY window(ts, '5 minutes'),
         dstaddr, srcport, dstport, protocol
