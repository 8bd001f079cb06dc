// Benchdns measures federation-dns beside Knot, NSD, BIND and CoreDNS: the same zone, the same queries,
// one after the other on the same machine, over loopback.
//
//	make bench-dns
//
// The zone is one of federated Services: a name for all regions, three for regions, three for zones; of
// a tenth of the services one zone has nothing, so that its name is a CNAME. The load keeps a window of
// queries open on sockets of many networks, with many packets for each system call, so that the server
// is always busy. What is compared is the server's CPU time per answer, as the kernel counts it: cores
// are shared with the load, so answers a second say less.
package main
