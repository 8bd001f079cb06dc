// Package plan decides, for one federated object, which clusters can be used at the moment, and has
// the scheduler divide the replicas over them. It is pure: values in, the placement, what moved and
// when to look again out.
//
// What runs where is taken from the last placement, not from the members: so the decision needs no
// member to answer, and is the same after a restart.
package plan

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// Object is what matters of a federated object.
type Object struct {
	// Key is NAMESPACE/NAME.
	Key      string
	Replicas int64
	// Preferences are nil where the object has none.
	Preferences *v1beta1.ReplicaPreferences
	// Selector matches the labels of clusters; nil matches all.
	Selector labels.Selector
	// Last is the placement so far, nil where there is none.
	Last *v1beta1.Placement
}

// Decision is a placement and what led to it.
type Decision struct {
	Placement v1beta1.Placement
	// Moved says in words what changed against the last placement; "" where nothing did.
	Moved string
	// LookAgain is how long the decision holds if nothing else changes; 0: for ever.
	LookAgain time.Duration
	// Reasons has, per cluster, what made its number.
	Reasons map[string][]string
}

// Decide places an object. A cluster that is not ready keeps what it has, and gets no more, until
// grace is over; then its replicas go elsewhere. With no cluster that can be used at all, the last
// placement stays: there is nowhere to move to.
func Decide(o Object, clusters []*v1beta1.Cluster, grace time.Duration, now time.Time) Decision {
	d := Decision{}
	request := scheduler.Request{Key: o.Key, Replicas: o.Replicas, Preferences: o.Preferences}
	out := map[string]string{}
	usable := 0
	for _, c := range clusters {
		last := int64(0)
		if o.Last != nil {
			last = o.Last.Clusters[c.Name]
		}
		if o.Selector != nil && !o.Selector.Matches(labels.Set(c.Labels)) {
			out[c.Name] = "not selected"
			continue
		}
		one := scheduler.Cluster{Name: c.Name, Current: last}
		if c.IsReady() {
			usable++
		} else {
			left := remaining(c, grace, now)
			if left <= 0 {
				out[c.Name] = fmt.Sprintf("not ready for more than %s", grace)
				continue
			}
			if d.LookAgain == 0 || left < d.LookAgain {
				d.LookAgain = left
			}
			one.Capacity = &last
		}
		request.Clusters = append(request.Clusters, one)
	}
	if usable == 0 && o.Last != nil {
		d.Placement = *o.Last
		return d
	}
	result := scheduler.Plan(request)
	d.Reasons = result.Reasons
	d.Placement = v1beta1.Placement{Clusters: withoutZeros(result.Plan), Overflow: withoutZeros(result.Overflow), Unplaced: result.Unplaced}
	// Overflow is asked of clusters that are short of room. One that is away is not.
	for _, c := range request.Clusters {
		if c.Capacity != nil {
			delete(d.Placement.Overflow, c.Name)
		}
	}
	d.Moved = moved(o.Last, &d.Placement, out)
	return d
}

// remaining is how long a cluster that is not ready still counts.
func remaining(c *v1beta1.Cluster, grace time.Duration, now time.Time) time.Duration {
	ready := c.Condition(v1beta1.ClusterReady)
	if ready == nil {
		return 0 // never seen: nothing is there that could be waited for
	}
	return ready.LastTransitionTime.Add(grace).Sub(now)
}

func withoutZeros(from map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for name, n := range from {
		if n != 0 {
			out[name] = n
		}
	}
	return out
}

// maxNamed bounds how many clusters a message names.
const maxNamed = 10

func moved(last, next *v1beta1.Placement, why map[string]string) string {
	if last == nil {
		last = &v1beta1.Placement{}
	}
	names := map[string]bool{}
	for name := range last.Clusters {
		names[name] = true
	}
	for name := range next.Clusters {
		names[name] = true
	}
	var parts []string
	for name := range names {
		was, is := last.Clusters[name], next.Clusters[name]
		if was == is {
			continue
		}
		part := fmt.Sprintf("%s %d→%d", name, was, is)
		if why[name] != "" {
			part += " (" + why[name] + ")"
		}
		parts = append(parts, part)
	}
	sort.Strings(parts)
	if len(parts) > maxNamed {
		parts = append(parts[:maxNamed], fmt.Sprintf("and %d more", len(parts)-maxNamed))
	}
	if next.Unplaced != last.Unplaced {
		parts = append(parts, fmt.Sprintf("%d fit nowhere", next.Unplaced))
	}
	return strings.Join(parts, ", ")
}
