package plan

import (
	"encoding/json"
	"maps"
	"slices"
)

// Statement is what a replica reports of clusters that somebody judges lost, and of no others.
type Statement struct {
	// Lost are those that it judges lost itself.
	Lost []string `json:"lost,omitempty"`
	// Well are those that another replica judges lost and that answer this one.
	Well []string `json:"well,omitempty"`
}

const (
	// maxStated is the maximum of clusters in each list: the first by name, so that all replicas name the same.
	maxStated = 64
	// maxStatement is the maximum size of a statement in bytes; a larger one is ignored.
	maxStatement = 64 << 10
)

// State returns a replica's statement. found has, by cluster, whether it is well; the replica knows nothing of missing
// ones. others are the statements of the live replicas.
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

// String returns the annotation's value.
func (s Statement) String() string {
	text, _ := json.Marshal(s) // never fails
	return string(text)
}

// ParseStatement parses a statement. ok is false if it is invalid.
func ParseStatement(text string) (s Statement, ok bool) {
	if len(text) > maxStatement || json.Unmarshal([]byte(text), &s) != nil {
		return Statement{}, false
	}
	return s.bounded(), true
}
