package plan

import "federation/dnsprovider"

// Zone is a DNS zone, and whose names in it are.
type Zone struct {
	// Federation is the federation's name.
	Federation string
	// Name is canonical.
	Name string
	// Shared: others write to the zone too. What is ours beyond the names that Owns knows is marked.
	Shared bool
}

// nameServer is the name of the built-in server.
func (z Zone) nameServer() string { return "ns." + z.Name }

// Owns reports whether a canonical name has the form of a Service's names: then it is ours.
func (z Zone) Owns(name string) bool { return Owns(z.Federation, z.Name, name) }

// Marked returns the sets and, in a shared zone, the marks of the names that do not have that form. Sets whose name
// cannot be marked are left out.
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

// Split parts a zone's content in what is ours, which we may change, and what is others'. Beyond the names that Owns
// knows, ours are, in a shared zone, marks and the answers at marked names; in another one those at the names in put.
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
		if z.Owns(set.Name) || isMark || put[set.Name] && answers(set.Type) {
			ours = append(ours, set)
		} else {
			others = append(others, set)
		}
	}
	return ours, others
}

// answers reports whether a record of the type answers where a name leads.
func answers(t dnsprovider.Type) bool {
	return t == dnsprovider.A || t == dnsprovider.AAAA || t == dnsprovider.CNAME
}

// Taken returns the names among those of want at which others have records that ours cannot stand beside: answers,
// or anything where one of the two is a CNAME. Those names are theirs.
func Taken(others, want []dnsprovider.RRSet) map[string]bool {
	types := map[string][]dnsprovider.Type{}
	for _, set := range others {
		types[set.Name] = append(types[set.Name], set.Type)
	}
	taken := map[string]bool{}
	for _, set := range want {
		for _, t := range types[set.Name] {
			if answers(t) || set.Type == dnsprovider.CNAME {
				taken[set.Name] = true
			}
		}
	}
	return taken
}
