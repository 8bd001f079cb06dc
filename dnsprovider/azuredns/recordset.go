package azuredns

import (
	"fmt"
	"path"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// relativeName returns a name in Azure's form: without the zone, "@" for the zone itself.
func relativeName(name, zone string) string {
	if name == zone {
		return "@"
	}
	return strings.TrimSuffix(name, "."+zone)
}

// idOf returns false for a set that has none of the fields that every set has.
func idOf(theirs *armdns.RecordSet, zone string) (id, bool) {
	if theirs == nil || theirs.Name == nil || theirs.Type == nil || theirs.Properties == nil {
		return id{}, false
	}
	name := strings.ToLower(*theirs.Name) + "." + zone
	if *theirs.Name == "@" {
		name = zone
	}
	return id{name, dnsprovider.Type(path.Base(*theirs.Type))}, true // "Microsoft.Network/dnszones/A"
}

// fromAzure returns a record set in our form; false for one that is no plain set of our types.
func fromAzure(key id, theirs *armdns.RecordSet) (dnsprovider.RRSet, bool) {
	p := theirs.Properties
	if p.TTL == nil || *p.TTL < 0 || p.TargetResource != nil && p.TargetResource.ID != nil {
		return dnsprovider.RRSet{}, false
	}
	var rdata []string
	for _, r := range p.ARecords {
		rdata = append(rdata, valueOf(r.IPv4Address))
	}
	for _, r := range p.AaaaRecords {
		rdata = append(rdata, valueOf(r.IPv6Address))
	}
	if p.CnameRecord != nil {
		rdata = append(rdata, valueOf(p.CnameRecord.Cname))
	}
	for _, r := range p.TxtRecords {
		rdata = append(rdata, quoteStrings(r.Value))
	}
	set, err := dnsprovider.New(key.name, key.typ, uint32(*p.TTL), rdata...)
	return set, err == nil
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// toAzure fails if the text is not valid for a TXT record.
func toAzure(set dnsprovider.RRSet) (armdns.RecordSet, error) {
	p := &armdns.RecordSetProperties{TTL: new(int64(set.TTL))}
	for _, data := range set.Rdata {
		switch set.Type {
		case dnsprovider.A:
			p.ARecords = append(p.ARecords, &armdns.ARecord{IPv4Address: &data})
		case dnsprovider.AAAA:
			p.AaaaRecords = append(p.AaaaRecords, &armdns.AaaaRecord{IPv6Address: &data})
		case dnsprovider.CNAME:
			p.CnameRecord = &armdns.CnameRecord{Cname: new(strings.TrimSuffix(data, "."))}
		case "TXT":
			strs, err := unquoteStrings(data)
			if err != nil {
				return armdns.RecordSet{}, fmt.Errorf("record %s TXT: value %q: %w", set.Name, data, err)
			}
			p.TxtRecords = append(p.TxtRecords, &armdns.TxtRecord{Value: strs})
		}
	}
	return armdns.RecordSet{Properties: p}, nil
}

// quoteStrings returns the strings of a TXT record in zone file format; Azure has them bare.
func quoteStrings(strs []*string) string {
	var parts []string
	for _, s := range strs {
		parts = append(parts, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(valueOf(s))+`"`)
	}
	return strings.Join(parts, " ")
}

// unquoteStrings reverses quoteStrings.
func unquoteStrings(data string) (strs []*string, err error) {
	rr, err := dns.NewRR(". 0 IN TXT " + data)
	if err != nil {
		return nil, err
	}
	record, ok := rr.(*dns.TXT)
	if !ok {
		return nil, fmt.Errorf("must be strings in quotes")
	}
	for _, s := range record.Txt {
		strs = append(strs, new(strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(s)))
	}
	return strs, nil
}
