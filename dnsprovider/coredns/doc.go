// Package coredns keeps records where CoreDNS' plugin "etcd" looks for them: in etcd, in the layout of
// SkyDNS, a key for each record below the name's labels in reverse order.
//
//	provider, err := coredns.New(coredns.Options{Connect: connect, Zones: []string{"example.com."}})
//	err = provider.Apply(ctx, "example.com.", changes)
//
// A batch of steps is one transaction of etcd, which is refused when somebody has written at one of
// the names since they were read. The records of web.example.com. are at
//
//	/skydns/com/example/web/_f<hash of the record>   {"host":"192.0.2.1","ttl":15,"group":"web.example.com."}
//
// The group keeps the records of names below web.example.com. out of its answers: without it, the
// plugin answers a name with all of its subtree.
//
// What CoreDNS makes of it is not all that a zone should be; who needs that has other providers to
// choose from. It answers a name that has no records, and names below it that have, with theirs
// instead of with none. A question for CNAME gets NXDOMAIN, though the name is there, and so does one
// for NS at the apex until somebody has put them below ns.dns.<zone>. The key's label is a name, which
// answers, too. And a record that somebody else puts below one of our names, without a group, joins
// its answers unseen.
//
// What was traded: only A, AAAA, CNAME and TXT are published; those are what the federation writes. A
// zone is held when Options say so, since etcd would hold any. Below dns.<zone> the plugin has things
// of its own, which are not shown. A transaction has at most 128 operations, the server's default.
package coredns
