package plan

import (
	"encoding/json"
	"maps"
	"slices"
)

// Statement is what a replica says of the clusters that it probes: of those that somebody judges lost, and of no others.
type Statement struct {
	// Lost are those that it judges lost.
	Lost []string `json:"lost,omitempty"`
	// Well are those that another replica judges lost and that answer this one.
	Well []string `json:"well,omitempty"`
}

const (
	// maxStated is how many clusters a statement names of either sort: the first by name, so that all replicas name the same.
	maxStated = 64
	// maxStatement is the size up to which a statement is read.
	maxStatement = 64 << 10
)

// State makes the statement of a replica by what it found, by cluster: whether it is well. A cluster that is missing there it knows nothing
// of. others are the statements of the replicas that live.
func State(found map[string]bool, others []Statement) (s Statement) {
	doubted := map[string]bool{}
	for _, other := range others {
		for _, cluster := range other.Lost {
			doubted[cluster] = true
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(found)) {
		switch well := found[cluster]; {
		case !well:
			s.Lost = append(s.Lost, cluster)
		case doubted[cluster]:
			s.Well = append(s.Well, cluster)
		}
	}
	return s.bounded()
}

func (s Statement) bounded() Statement {
	s.Lost, s.Well = s.Lost[:min(len(s.Lost), maxStated)], s.Well[:min(len(s.Well), maxStated)]
	return s
}

// String is the statement as an annotation has it.
func (s Statement) String() string {
	text, _ := json.Marshal(s) // never fails
	return string(text)
}

// ParseStatement reads a statement. ok: it is one.
func ParseStatement(text string) (s Statement, ok bool) {
	if len(text) > maxStatement || json.Unmarshal([]byte(text), &s) != nil {
		return Statement{}, false
	}
	return s.bounded(), true
}
