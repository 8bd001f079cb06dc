package plan

import "federation/dnsprovider"

// Zone is a DNS zone and the rule for which of its names are ours.
type Zone struct {
	// Federation is the federation's name.
	Federation string
	// Name is canonical.
	Name string
	// Shared: others write to the zone too. Our names beyond those that Owns recognizes are marked.
	Shared bool
}

// nameServer returns the name of the built-in server.
func (z Zone) nameServer() string { return "ns." + z.Name }

// Owns reports whether a canonical name has the form of a Service's names, and is thus ours.
func (z Zone) Owns(name string) bool { return Owns(z.Federation, z.Name, name) }

// Marked returns the sets and, in a shared zone, marks for the names that do not have that form. It leaves out sets
// whose name cannot be marked.
func (z Zone) Marked(sets []dnsprovider.RRSet) []dnsprovider.RRSet {
	if !z.Shared {
		return sets
	}
	var out []dnsprovider.RRSet
	marks := map[string]bool{}
	for _, set := range sets {
		if !z.Owns(set.Name) && !marks[set.Name] {
			mark, err := dnsprovider.Mark(set.Name, z.Federation)
			if err != nil {
				continue
			}
			marks[set.Name] = true
			out = append(out, mark)
		}
		out = append(out, set)
	}
	return out
}

// Split divides a zone's content into ours, which we may change, and others'. Beyond the names that Owns recognizes,
// ours are the marks and the answers at marked names in a shared zone, and those at the names in put in any other.
func (z Zone) Split(all []dnsprovider.RRSet, put map[string]bool) (ours, others []dnsprovider.RRSet) {
	if z.Shared {
		put = dnsprovider.Marked(all, z.Federation)
	}
	marks := map[string]bool{}
	for name := range put {
		if mark, err := dnsprovider.Mark(name, z.Federation); z.Shared && err == nil {
			marks[mark.Name] = true
		}
	}
	for _, set := range all {
		isMark := set.Type == dnsprovider.TXT && marks[set.Name]
		if z.Owns(set.Name) || isMark || put[set.Name] && isAnswerType(set.Type) {
			ours = append(ours, set)
		} else {
			others = append(others, set)
		}
	}
	return ours, others
}

// isAnswerType reports whether a record of the type is an answer.
func isAnswerType(t dnsprovider.Type) bool {
	return t == dnsprovider.A || t == dnsprovider.AAAA || t == dnsprovider.CNAME
}

// Taken returns the names in want at which others have records that ours cannot coexist with: answers, or anything if
// one of the two is a CNAME. Those names are theirs.
func Taken(others, want []dnsprovider.RRSet) map[string]bool {
	types := map[string][]dnsprovider.Type{}
	for _, set := range others {
		types[set.Name] = append(types[set.Name], set.Type)
	}
	taken := map[string]bool{}
	for _, set := range want {
		for _, t := range types[set.Name] {
			if isAnswerType(t) || set.Type == dnsprovider.CNAME {
				taken[set.Name] = true
			}
		}
	}
	return taken
}
