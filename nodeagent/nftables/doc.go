// Package nftables writes a ruleset into the kernel's nftables, so that the cost of a packet and of a change does not
// grow with the number of Services.
//
//	w, err := nftables.New()                    // opens the kernel in the network namespace of the thread
//	err = w.Sync(ctx, node, model.Ports())      // reads what is there, writes what differs
//	err = w.Write(ctx, node, change.Ports)      // writes what changed, new chains a transaction earlier
//	go w.Watch(ctx, lost)                       // lost is called when another hand has changed our tables: Sync then
//	err = w.Cleanup(ctx)
//
// There is one table a family, ip federation and ip6 federation. All Services are elements of these sets:
//
//	services     address . protocol . port → goto a chain
//	endpoints    address . protocol . port . slot → address . port
//	refused      address . protocol . port
//	cluster-ips  address: ports that no Service has are refused there
//	sources      address . protocol . port . range of source addresses
//	sticky       address . protocol . port → goto a chain that remembers the client in
//	affinity     client . address . protocol . port → address . port, with a timeout; filled by packets
//	hairpin      address . address: an endpoint of this node that comes back to itself is masqueraded
//	remote       address: what goes to other clusters is masqueraded
//	exposed      address . protocol . port that clients outside use; empty if they are never dropped
//	dark         one element, with a timeout, while what comes from outside to those is dropped (ADR 117)
//	asked, taken, retried address . protocol . port of a backend, with a counter; of load balancers only (balancer.go)
//
// A node port has the address 0.0.0.0 or :: in them. No chain is of one Service: pick-… choose one of so many slots,
// route-… go to pick-… by where a packet comes from, stick-… remember clients for so many seconds. A backend of weight
// 3 has three slots. So a change of a Service is a change of its elements, and a packet to the last of 10,000 Services
// costs as much as one to the first.
//
// Figures, as root: go test -run NONE -bench . ./nodeagent/nftables
//
// Beside another service proxy (ruleset.Node.Federated) the same tables have their hooks one before dstnat, and mark
// packets otherwise than kube-proxy.
//
// What was traded: `nft list ruleset` shows the Services in maps, not each in a chain of its own; their names are not
// in the kernel at all. Node ports are not served at 127.0.0.1, which the kernel routes nowhere.
package nftables
