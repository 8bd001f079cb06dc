package cloudflare

import (
	"slices"
	"strings"

	"github.com/cloudflare/cloudflare-go/v7/dns"

	"federation/dnsprovider"
)

// automatic is the API's word for a TTL that Cloudflare chooses; what it chooses is 300 s.
const automatic, automaticTTL = 1, 300

// record is one of Cloudflare's, in our forms.
type record struct {
	id   string
	typ  dnsprovider.Type
	data string
	ttl  uint32
}

func newRecord(name string, r dns.RecordResponse) record {
	ours := record{id: r.ID, typ: dnsprovider.Type(r.Type), data: r.Content, ttl: uint32(r.TTL)}
	if r.TTL == automatic {
		ours.ttl = automaticTTL
	}
	if set, err := dnsprovider.New(name, ours.typ, ours.ttl, ours.data); err == nil {
		ours.data = set.Rdata[0] // addresses and names as we write them
	}
	return ours
}

// setsOf puts the records of one name together. Names and data that we never write, such as
// wildcards, and NS at the apex are left out. A set has its records' largest TTL.
func setsOf(name string, records []record, zone string) (sets []dnsprovider.RRSet) {
	byType := map[dnsprovider.Type][]record{}
	for _, r := range records {
		byType[r.typ] = append(byType[r.typ], r)
	}
	for typ, list := range byType {
		var rdata []string
		var ttl uint32
		for _, r := range list {
			rdata, ttl = append(rdata, r.data), max(ttl, r.ttl)
		}
		set, err := dnsprovider.New(name, typ, ttl, rdata...)
		if ownOfZone := name == zone && typ == "NS"; err == nil && !ownOfZone {
			sets = append(sets, set)
		}
	}
	return sets
}

// transaction returns the changes as calls on single records; there are the zone's.
func transaction(changes dnsprovider.ChangeSet, there map[string][]record) (params dns.RecordBatchParams) {
	for _, step := range changes {
		for _, r := range there[step.Name] {
			switch set := setWith(r, step.New); {
			case set == nil && setWith(r, step.Old) != nil:
				params.Deletes.Value = append(params.Deletes.Value, remove(r.id))
			case set != nil && set.TTL != r.ttl:
				params.Patches.Value = append(params.Patches.Value, ttlPatch(r.id, set.TTL))
			}
		}
		for _, set := range step.New {
			for _, data := range set.Rdata {
				if !slices.ContainsFunc(there[step.Name], func(r record) bool { return r.typ == set.Type && r.data == data }) {
					params.Posts.Value = append(params.Posts.Value, post(set, data))
				}
			}
		}
	}
	params.Deletes.Present = len(params.Deletes.Value) > 0
	params.Patches.Present = len(params.Patches.Value) > 0
	params.Posts.Present = len(params.Posts.Value) > 0
	return params
}

// setWith returns the set that the record belongs to, with type and data; nil for none.
func setWith(r record, sets []dnsprovider.RRSet) *dnsprovider.RRSet {
	for i, set := range sets {
		if set.Type == r.typ && slices.Contains(set.Rdata, r.data) {
			return &sets[i]
		}
	}
	return nil
}

func remove(id string) (d dns.RecordBatchParamsDelete) {
	d.ID.Value, d.ID.Present = id, true
	return d
}

// ttlPatch changes the TTL and nothing else. The SDK has a parameter for each type; the wire has not.
func ttlPatch(id string, ttl uint32) (p dns.BatchPatchARecordParam) {
	p.ID.Value, p.ID.Present = id, true
	p.TTL.Value, p.TTL.Present = dns.TTL(ttl), true
	return p
}

func post(set dnsprovider.RRSet, data string) (p dns.RecordBatchParamsPost) {
	if set.Type == dnsprovider.CNAME {
		data = strings.TrimSuffix(data, ".")
	}
	p.Name.Value, p.Name.Present = strings.TrimSuffix(set.Name, "."), true
	p.Type.Value, p.Type.Present = dns.RecordBatchParamsPostsType(set.Type), true
	p.Content.Value, p.Content.Present = data, true
	p.TTL.Value, p.TTL.Present = dns.TTL(set.TTL), true
	p.Proxied.Value, p.Proxied.Present = false, true
	return p
}
