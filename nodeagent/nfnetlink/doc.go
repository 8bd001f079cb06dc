// Package nfnetlink talks to the kernel's netfilter over netlink: messages with nested attributes, transactions of nftables,
// dumps, and events. Its users know the content of the messages (nodeagent/nftables, nodeagent/conntrack).
//
//	s, err := nfnetlink.Dial()                  // in the network namespace of the thread
//	var b nfnetlink.Batch
//	b.Begin(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, unix.NFPROTO_IPV4)
//	b.String(unix.NFTA_TABLE_NAME, "federation")
//	err = s.Commit(&b)                          // all of it or nothing
//
// What was traded: github.com/google/nftables requests an answer to each message and an echo of each rule, and allocates
// several objects per element. Here one acknowledgement covers a transaction, and an element is bytes appended to a buffer.
// Expressions of rules still use that library (docs/adr/0039).
package nfnetlink
