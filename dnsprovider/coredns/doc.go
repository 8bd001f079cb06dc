// Package coredns keeps records where CoreDNS' plugin "etcd" reads them: in etcd, in the layout of SkyDNS, a key for each
// record below the name's labels in reverse order.
//
//	provider, err := coredns.New(coredns.Options{Connect: connect, Zones: []string{"example.com."}})
//	err = provider.Apply(ctx, "example.com.", changes)
//
// A batch of steps is one transaction of etcd, which fails if somebody has written at one of the names since they were read.
// The records of web.example.com. are at
//
//	/skydns/com/example/web/_f<hash of the record>   {"host":"192.0.2.1","ttl":15,"group":"web.example.com."}
//
// The group keeps the records of names below web.example.com. out of its answers: without it, the plugin answers a name with
// all of its subtree.
//
// CoreDNS' answers are not all that a zone should give; other providers do better. It answers a name without records, but with
// names below that have some, with theirs instead of with none. A question for CNAME gets NXDOMAIN, though the name exists,
// and so does one for NS at the apex until somebody has put them below ns.dns.<zone>. The key's label is a name, which answers,
// too. And a record that somebody else puts below one of our names, without a group, joins its answers unseen.
//
// What was traded: only A, AAAA, CNAME and TXT are published, which are what the federation writes. A zone is held if Options
// say so, because etcd would hold any. Below dns.<zone> the plugin has things of its own, which are not shown. A transaction
// has at most 128 operations, the server's default.
package coredns
