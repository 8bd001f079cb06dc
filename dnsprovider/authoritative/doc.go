// Package authoritative is the built-in DNS server: it answers for one zone, over UDP and TCP, and takes its records in
// process as a dnsprovider.Provider.
//
//	server, err := authoritative.New(authoritative.Options{Zone: "example.com", Listen: "192.0.2.53:53"})
//	go server.Run(ctx)
//	err = server.Apply(ctx, "example.com.", changes)
//
// All answers come from an immutable snapshot. Apply builds the next one beside it and swaps one pointer. So a reader sees only
// whole steps, no query waits for a change, and a change costs what it touches, not what the zone holds (table.go). The zone is
// in memory only: until the first Apply every question in the zone gets SERVFAIL, so that a restart is never mistaken for "no
// such name".
//
// Records are packed when they change (pack.go), and everything that a name has is one piece of memory (node.go), from which
// the given records can be read again. An answer is made in place of the query: its header and question stay, records are
// copied behind them, and their pointers to names are adjusted (reply.go). Packets come and go many at a time, through one
// socket per thread (batch.go), and the memory that their answers need is prefetched for all of them (table.go). No packet
// allocates memory.
//
// It supports EDNS with cookies (RFC 7873, 9018), client subnets (7871), NSID (5001) and extended errors (8914). It limits the
// answers per second to one network over UDP (limiter.go), so that nobody is flooded through it. A set with variants gives one
// of them to each client (choose.go).
//
// SOA and NS at the apex, and the addresses of the name server ns.<zone>, are the server's own. There are no wildcards,
// delegations or DNAMEs: an answer is one lookup for each name of a CNAME chain.
//
// A client with a TSIG key may transfer the zone, whole or incrementally, and is notified of changes (transfer.go,
// transfer_journal.go, notify.go). Sign signs the zone (DNSSEC): records when they change, denials when they are asked for
// (dnssec.go, dnssec_denial.go).
//
// What was traded: query.go parses by hand only what nearly all clients send, one question with at most one OPT record. For
// everything else slow_path.go uses github.com/miekg/dns, which costs fifty times as much and is correct. A large answer is
// truncated to no records, because a client that sees TC must ask again over TCP anyway. System calls are those of Linux.
package authoritative
