// Command internet is the network between real nodes: a network namespace with a bridge that nodes are plugged into,
// which routes what goes from one to another, and in which whoever wants to be a client outside of all clusters can run:
//
//	internet --data-dir DIR --dns 127.0.0.1:5353 --api 127.0.0.1:6443
//	nsenter --net=/proc/PID/ns/net curl http://192.0.2.1
//
// Its own address is 10.64.255.254/16, where the DNS server given by --dns, which is outside of the namespace, answers
// at port 53, and the API server given by --api at port 443. Members put their addresses and routes here (hack/local/member). The namespace has no name: it is gone,
// with all that is plugged in, when the process ends, however it ends.
package main
