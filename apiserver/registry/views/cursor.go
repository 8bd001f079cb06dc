package views

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// maxContinue is the maximum size in bytes of a member's continue token; maxCursor is that of a client's.
	maxContinue = 1 << 10
	maxCursor   = atOnce*2*maxContinue + 1<<10
	// maxObjects is how many objects of one kind a member has at most, by pages: more than Kubernetes is made for. A member that
	// continues beyond makes objects up, and would have the client ask forever.
	maxObjects = 200_000
)

// cursor is the client's continue token, and the only state of a paged list: nothing is kept here. A page has a share
// of each of up to atOnce members, in the order of the names within the page; when one is exhausted, the next takes its
// place.
type cursor struct {
	// Version is that of the first page.
	Version string `json:"v"`
	// After is the last cluster, by name, that was asked.
	After string `json:"a"`
	// Open are the clusters that have more, with their own tokens; Had is how many objects they had on the pages before.
	Open map[string]string `json:"o,omitempty"`
	Had  map[string]int    `json:"h,omitempty"`
}

func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	if len(text) <= maxCursor {
		var data []byte
		if data, err = base64.RawURLEncoding.DecodeString(text); err == nil {
			err = json.Unmarshal(data, &c)
		}
	}
	if err != nil || c.Version == "" {
		return c, errors.NewBadRequest("continue: must be what the page before said")
	}
	return c, nil
}

// page is what to request for one page.
type page struct {
	clusters []*v1beta1.Cluster
	each     int64 // how many objects of each; 0: all
	version  string
	after    string
	had      map[string]int
	more     bool // there are clusters that have not been asked yet
}

// nextPage returns the clusters of the next page, and how much of each: those with more, and then those not asked yet.
func (c cursor) nextPage(clusters []*v1beta1.Cluster, by selected, limit int64) page {
	p := page{version: c.Version, after: c.After, had: c.Had}
	inOrder := slices.SortedFunc(slices.Values(clusters), func(a, b *v1beta1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	for _, cluster := range inOrder {
		if _, open := c.Open[cluster.Name]; open {
			p.clusters = append(p.clusters, cluster)
		}
	}
	for _, cluster := range inOrder {
		if _, _, any := by.selectorsFor(cluster.Name); !any || cluster.Name <= c.After {
			continue
		}
		if limit > 0 && (len(p.clusters) >= atOnce || int64(len(p.clusters)) >= limit) {
			p.more = true
			break
		}
		p.clusters, p.after = append(p.clusters, cluster), cluster.Name
	}
	if limit > 0 && len(p.clusters) > 0 {
		p.each = max(1, limit/int64(len(p.clusters)))
	}
	return p
}

// next returns the token for the next page, "" after the last. open are the clusters that have more.
func (p page) next(open map[string]string) string {
	if len(open) == 0 && !p.more {
		return ""
	}
	had := maps.Clone(p.had)
	maps.DeleteFunc(had, func(cluster string, _ int) bool { return open[cluster] == "" })
	data, err := json.Marshal(cursor{p.version, p.after, open, had})
	if err != nil {
		panic("strings cannot be written: " + err.Error())
	}
	return base64.RawURLEncoding.EncodeToString(data)
}
