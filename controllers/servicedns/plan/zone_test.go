package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"federation/dnsprovider"
)

// randomSets has at most one set of a type at a name.
func randomSets(r *rand.Rand, names []string, types ...dnsprovider.Type) (sets []dnsprovider.RRSet) {
	data := map[dnsprovider.Type]string{dnsprovider.A: "192.0.2.1", dnsprovider.AAAA: "2001:db8::1", dnsprovider.CNAME: "elsewhere.test.", dnsprovider.TXT: `"text"`}
	for _, name := range names {
		for _, of := range types {
			if r.IntN(4) == 0 {
				sets = append(sets, dnsprovider.RRSet{Name: name, Type: of, TTL: 60, Rdata: []string{data[of]}})
			}
		}
	}
	return sets
}

func sortedSets(sets []dnsprovider.RRSet) string {
	words := make([]string, 0, len(sets))
	for _, set := range sets {
		words = append(words, fmt.Sprint(set.Name, " ", set.Type, " ", set.Rdata))
	}
	slices.Sort(words)
	return strings.Join(words, "\n")
}

var (
	zoneHosts    = []string{"www.example.com.", "api.example.com.", "mail.example.com."}
	zoneServices = []string{"web.shop.fed.svc.example.com.", "web.shop.fed.svc.east.example.com."}
	othersNames  = []string{"example.com.", "www.example.com.", "ftp.example.com.", "web.shop.other.svc.example.com.", "ns.example.com."}
	answerTypes  = []dnsprovider.Type{dnsprovider.A, dnsprovider.AAAA, dnsprovider.CNAME}
)

// TestZone_WhatIsPutIsOurs: of a zone with records of others, ours is what we put there, with its marks where the zone is shared, and all else is theirs; for
// another federation in a shared zone the whole is.
func TestZone_WhatIsPutIsOurs(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		z := Zone{Federation: "fed", Name: "example.com.", Shared: r.IntN(2) == 0}
		want := randomSets(r, slices.Concat(zoneHosts, zoneServices), answerTypes...)
		theirs := randomSets(r, othersNames, dnsprovider.A, dnsprovider.TXT)
		taken := Taken(theirs, want)
		want = slices.DeleteFunc(want, func(set dnsprovider.RRSet) bool { return taken[set.Name] })
		put := map[string]bool{}
		for _, set := range want {
			put[set.Name] = !z.Owns(set.Name)
		}
		marked := z.Marked(want)
		content := slices.Concat(marked, theirs)
		r.Shuffle(len(content), func(i, j int) { content[i], content[j] = content[j], content[i] })
		if z.Shared {
			put = nil // what is read says it
		}
		ours, others := z.Split(content, put)
		if sortedSets(ours) != sortedSets(marked) || sortedSets(others) != sortedSets(theirs) {
			t.Fatalf("seed %d: shared %t: ours\n%s\nwant\n%s\ntheirs\n%s\nwant\n%s", seed, z.Shared, sortedSets(ours), sortedSets(marked), sortedSets(others), sortedSets(theirs))
		}
		if !z.Shared {
			if sortedSets(marked) != sortedSets(want) {
				t.Fatalf("seed %d: marks in a zone of our own:\n%s", seed, sortedSets(marked))
			}
			continue
		}
		marks := 0
		for _, set := range marked {
			if set.Type == dnsprovider.TXT {
				marks++
			}
		}
		hosts := map[string]bool{}
		for _, set := range want {
			if !z.Owns(set.Name) {
				hosts[set.Name] = true
			}
		}
		if marks != len(hosts) {
			t.Fatalf("seed %d: %d marks for %d hosts:\n%s", seed, marks, len(hosts), sortedSets(marked))
		}
		theirs = slices.DeleteFunc(theirs, func(set dnsprovider.RRSet) bool { return Owns("other", z.Name, set.Name) })
		if ours, _ := (Zone{Federation: "other", Name: z.Name, Shared: true}).Split(slices.Concat(marked, theirs), nil); len(ours) > 0 {
			t.Fatalf("seed %d: another federation takes for its own\n%s", seed, sortedSets(ours))
		}
	}
}

// TestTaken_AgainstPairs looks at each of our sets beside each of theirs.
func TestTaken_AgainstPairs(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		want, theirs := randomSets(r, zoneHosts, answerTypes...), randomSets(r, zoneHosts, append(answerTypes, dnsprovider.TXT)...)
		got := Taken(theirs, want)
		for _, name := range zoneHosts {
			clash := false
			for _, ours := range want {
				for _, other := range theirs {
					both := ours.Name == name && other.Name == name
					clash = clash || both && (other.Type != dnsprovider.TXT || ours.Type == dnsprovider.CNAME)
				}
			}
			if got[name] != clash {
				t.Fatalf("seed %d: %s is theirs: %t; ours\n%s\ntheirs\n%s", seed, name, got[name], sortedSets(want), sortedSets(theirs))
			}
		}
	}
}

// TestCondition_TellsTheWorst of whatever there is to tell, first, and says how much it leaves out.
func TestCondition_TellsTheWorst(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 3))
		reason := func(i int) Reason {
			n := r.IntN(len(weights))
			if n == len(weights)-1 {
				return Reason{Message: "of no condition"}
			}
			return Reason{Code: weights[n], Message: fmt.Sprintf("message-%d.", i), Cluster: []string{"", "east-a"}[r.IntN(2)]}
		}
		var all []Reason
		for i := range r.IntN(9) {
			all = append(all, reason(i))
		}
		half := r.IntN(len(all) + 1)
		p := Plan{Reasons: all[:half], Records: make([]dnsprovider.RRSet, r.IntN(2))}
		c := p.Condition(all[half:])
		told, worst := 0, len(weights)-1
		for _, one := range all {
			if one.Code != "" {
				told, worst = told+1, min(worst, slices.Index(weights, one.Code))
			}
		}
		if c == nil {
			if told > 0 || len(p.Records) > 0 {
				t.Fatalf("seed %d: the message says nothing of %v", seed, all)
			}
			continue
		}
		if c.Reason != weights[worst] || c.Published != (worst >= slices.Index(weights, FailStatic)) || told+len(p.Records) == 0 {
			t.Fatalf("seed %d: %+v of %v", seed, c, all)
		}
		if shown := strings.Count(c.Message, "message-"); shown != min(told, maxTold) || strings.Contains(c.Message, fmt.Sprintf("and %d more", told-maxTold)) != (told > maxTold) {
			t.Fatalf("seed %d: the message has %d of %d: %q", seed, shown, told, c.Message)
		}
		if strings.Contains(c.Message, "of no condition") || told > 0 && !strings.HasPrefix(strings.TrimPrefix(c.Message, "cluster east-a: "), "message-") {
			t.Fatalf("seed %d: %q", seed, c.Message)
		}
	}
}

func TestCluster_MissingNames(t *testing.T) {
	for want, c := range map[string]Cluster{
		TopologyLabelsMissing + " region": {Zones: []string{"a"}}, TopologyLabelsMissing + " zone": {Region: "east"}, NameInvalid + " East": {Region: "East", Zones: []string{"a"}},
	} {
		code, part, _ := strings.Cut(want, " ")
		if reason, message := c.MissingNames("East is no DNS label"); reason != code || !strings.Contains(message, part) {
			t.Errorf("%+v: %s: %q", c, reason, message)
		}
	}
	if reason, message := (&Cluster{Region: "east", Zones: []string{"a"}}).MissingNames(""); reason+message != "" {
		t.Errorf("nothing is missing: %s: %q", reason, message)
	}
}
