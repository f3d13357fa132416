-- Applications, whoever uses them, as a router's protocol-port cache gives them.
SELECT window.start AS start,
       srcport, dstport, protocol,
       sum(packets) AS packets, sum(octets) AS octets, count(*) AS flows,
       min(first) AS first, max(last) AS last, sum(active) AS active
FROM flows
GROUP BY window(ts, '5 minutes'),
         srcport, dstport, protocol
