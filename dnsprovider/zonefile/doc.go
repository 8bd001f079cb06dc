// Package zonefile reads a master file (RFC 1035, section 5) into a zone as data.
//
//	zone, err := zonefile.Parse(file, "example.com.", zonefile.DefaultLimits)
//	changes := dnsprovider.Diff(nil, zone.Sets)
//
// $ORIGIN, $TTL and $GENERATE work; $INCLUDE is refused, so that the author of a zone cannot read other files by it. SOA and NS
// at the apex are apart from the rest, and may be missing: a server that has its own takes only the rest.
//
// What was traded: the grammar is that of github.com/miekg/dns. What the built-in server cannot serve is refused here, where
// the file can still be corrected: delegations, DNAME, wildcards, and what DNSSEC signing makes. A set whose records have
// different TTLs is an error (RFC 2181, section 5.2) and is not corrected silently.
package zonefile
