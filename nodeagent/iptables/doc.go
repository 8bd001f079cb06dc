// Package iptables is a Writer of the node agent: it brings a ruleset into the kernel as iptables rules, in the chains that
// kube-proxy has too (KUBE-SERVICES, KUBE-SVC-…, KUBE-SEP-…; beside kube-proxy, in the scope federated, FED-…), of either kind
// (nft or legacy) and for both families, as iptables would write them: legacy by replacing tables, nft by netlink.
//
// How to use it: New, then Sync with all Ports, then Write with the changes. Watch reports when somebody else has removed our
// rules; Cleanup removes all of them. Each Write names only the chains that differ. A Sync first compares with what the kernel
// holds, so that it writes nothing if nothing differs.
//
// What was traded: KUBE-SERVICES is a tree. With more than 16 addresses it leads to chains KUBE-NET-… by prefixes of the
// address, and so do node ports. A packet meets some dozens of rules instead of all, and a new Service changes one small chain.
// What is refused is marked in nat (KUBE-MARK-REJECT, KUBE-MARK-DROP) and refused in filter (KUBE-REFUSE), so that no Service
// needs a rule in two tables.
package iptables
