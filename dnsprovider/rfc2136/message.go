package rfc2136

import (
	"fmt"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// maxRecords is how many bytes the records of a message may have: 65535 less the question and the
// signature. They are counted without compression, so the message is shorter.
const maxRecords = 64000

// message is an UPDATE that carries out a number of whole steps.
type message struct {
	*dns.Msg
	steps int
	size  int // of the records
}

// beside are the types that must not exist at a name that gets a CNAME: those that people use at names of services. A
// server would ignore the CNAME silently.
var beside = []uint16{
	dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeMX, dns.TypeNS, dns.TypeSRV,
	dns.TypePTR, dns.TypeCAA, dns.TypeHTTPS, dns.TypeSVCB, dns.TypeTLSA, dns.TypeSSHFP,
}

// messagesOf returns the messages that carry out the changes in order; without changes, one that
// changes nothing. It fails for a step that is wrong in itself, is outside of the zone, or does not
// fit a message.
func messagesOf(zone string, changes dnsprovider.ChangeSet) ([]*message, error) {
	messages := []*message{{Msg: new(dns.Msg).SetUpdate(zone)}}
	for _, step := range changes {
		if !dnsprovider.InZone(step.Name, zone) {
			return nil, dnsprovider.Refusef("name %s: must be in the zone %s", step.Name, zone)
		}
		if _, err := step.Apply(step.Old); err != nil {
			return nil, err
		}
		m, err := messageOf(zone, step)
		if err != nil {
			return nil, err
		}
		if m.size > maxRecords {
			return nil, dnsprovider.Refusef("name %s: its change has %d bytes: a message has at most %d, and a name is changed by one", step.Name, m.size, maxRecords)
		}
		if last := messages[len(messages)-1]; last.size+m.size <= maxRecords {
			last.append(m)
		} else {
			messages = append(messages, m)
		}
	}
	for _, m := range messages {
		m.Compress = true
	}
	return messages, nil
}

func (m *message) append(other *message) {
	m.Answer, m.Ns = append(m.Answer, other.Answer...), append(m.Ns, other.Ns...)
	m.steps, m.size = m.steps+other.steps, m.size+other.size
}

// messageOf returns the message of one step: what must be there and what must not, then what goes,
// then what comes.
func messageOf(zone string, step dnsprovider.Step) (*message, error) {
	m := &message{Msg: new(dns.Msg).SetUpdate(zone), steps: 1}
	goes := map[uint16]bool{}
	for _, set := range step.Old {
		rrs, err := rrsOf(set)
		if err != nil {
			return nil, err
		}
		m.RemoveRRset(rrs[:1])
		m.Used(rrs)
		goes[rrs[0].Header().Rrtype] = true
	}
	for _, set := range step.New {
		rrs, err := rrsOf(set)
		if err != nil {
			return nil, err
		}
		m.RRsetNotUsed(absentSets(rrs[0].Header(), goes))
		m.Insert(rrs)
	}
	for _, rr := range append(m.Answer, m.Ns...) {
		m.size += dns.Len(rr)
	}
	return m, nil
}

// absentSets returns the sets that must not exist at the name when the one with this header comes, except for those that
// go.
func absentSets(h *dns.RR_Header, goes map[uint16]bool) (rrs []dns.RR) {
	types := []uint16{h.Rrtype, dns.TypeCNAME}
	if h.Rrtype == dns.TypeCNAME {
		types = append(types, beside...)
	}
	for i, t := range types {
		if !goes[t] && (i == 0 || t != types[0]) {
			rrs = append(rrs, &dns.ANY{Hdr: dns.RR_Header{Name: h.Name, Rrtype: t}})
		}
	}
	return rrs
}

// rrsOf returns the set's records on the wire.
func rrsOf(set dnsprovider.RRSet) ([]dns.RR, error) {
	var rrs []dns.RR
	for _, data := range set.Rdata {
		rr, err := dns.NewRR(fmt.Sprintf("%s %d IN %s %s", set.Name, set.TTL, set.Type, data))
		if err != nil || rr == nil {
			return nil, dnsprovider.Refusef("record %s %s: value %q: must be data of that type: %v", set.Name, set.Type, data, err)
		}
		rrs = append(rrs, rr)
	}
	if len(rrs) == 0 {
		return nil, dnsprovider.Refusef("record %s %s: no values: must be at least one", set.Name, set.Type)
	}
	return rrs, nil
}
