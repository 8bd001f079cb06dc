// Package authoritative is the built-in DNS server: it answers for one zone, over UDP and TCP, and
// takes its records in process as a dnsprovider.Provider.
//
//	server, err := authoritative.New(authoritative.Options{Zone: "example.com", Listen: "192.0.2.53:53"})
//	go server.Run(ctx)
//	err = server.Apply(ctx, "example.com.", changes)
//
// All answers come from a snapshot that never changes; Apply builds the next one beside it and swaps
// one pointer. So a reader sees whole steps only, no query waits for a change, and a change costs
// what it touches and not what the zone holds (table.go). The zone is in memory alone: until the first
// Apply every question in the zone gets SERVFAIL, so that a restart is never taken for "no such name".
//
// Records are packed when they change (pack.go), and all that a name has is one piece of memory (node.go): what was given is
// read from that again. An answer is then made in the place where the query
// lies: its header and question stay, records are copied behind them, and the pointers in them to
// names are set right (reply.go). Packets come and go many at a time, through one socket for each
// thread (batch.go), and for all of them what the answers need is read ahead (table.go). No packet costs memory.
//
// It speaks EDNS with cookies (RFC 7873, 9018), client subnets (7871), NSID (5001) and extended errors
// (8914), and bounds the answers a second to one network over UDP (limiter.go), so that nobody is
// flooded through it. A set with variants gives one of them to each who asks (choose.go).
//
// SOA and NS at the apex, and the addresses of the name server ns.<zone>, are the server's own. There
// are no wildcards, delegations or DNAMEs: an answer is one lookup for each name of a CNAME chain.
//
// Who has a TSIG key may transfer the zone, whole or what has changed since, and is told of changes
// (transfer.go, transfer_journal.go, notify.go). With Sign the zone is signed (DNSSEC): what is there when
// it changes, and that something is not there when it is asked for (dnssec.go, dnssec_denial.go).
//
// What was traded: query.go reads by hand only what nearly all clients send, one question with one
// OPT record or none. For all else unusual.go asks github.com/miekg/dns, which costs fifty times as
// much and is correct. A large answer is truncated whole, without part of its records, as a client
// that sees TC must ask again over TCP anyhow. System calls are those of Linux.
package authoritative
