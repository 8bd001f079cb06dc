package route53

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
)

// fromRoute53 returns a record set in our form; false for those that are no plain sets, have names that we never
// write, such as wildcards, or are the zone's own.
func fromRoute53(r types.ResourceRecordSet, zone string) (dnsprovider.RRSet, bool) {
	name := aws.ToString(r.Name)
	ownOfZone := name == zone && (r.Type == types.RRTypeSoa || r.Type == types.RRTypeNs)
	if ownOfZone || r.AliasTarget != nil || r.SetIdentifier != nil || r.TTL == nil || *r.TTL < 0 {
		return dnsprovider.RRSet{}, false
	}
	var rdata []string
	for _, v := range r.ResourceRecords {
		rdata = append(rdata, aws.ToString(v.Value))
	}
	set, err := dnsprovider.New(name, dnsprovider.Type(r.Type), uint32(*r.TTL), rdata...)
	return set, err == nil
}

func actions(action types.ChangeAction, sets []dnsprovider.RRSet) (changes []types.Change) {
	for _, set := range sets {
		theirs := &types.ResourceRecordSet{Name: aws.String(set.Name), Type: types.RRType(set.Type), TTL: aws.Int64(int64(set.TTL))}
		for _, data := range set.Rdata {
			theirs.ResourceRecords = append(theirs.ResourceRecords, types.ResourceRecord{Value: aws.String(data)})
		}
		changes = append(changes, types.Change{Action: action, ResourceRecordSet: theirs})
	}
	return changes
}

// stepSize returns how much of a change batch a step fills, in characters; a record counts as so many that
// both limits are kept.
func stepSize(step dnsprovider.Step) int {
	return max(batch.Records(step)*(maxCharacters/maxRecords), batch.Characters(step))
}
