package plan

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
)

// What a report must leave free of an object's annotations and size.
const (
	// spareRoom is left for what others write.
	spareRoom = 8 << 10
	// maxUnion is the maximum of addresses in status.loadBalancer: a request to etcd may have 1.5 MiB.
	maxUnion = 2048
)

// roomFor returns how many bytes the value of an annotation may have beside the others. If replicas are divided, it
// leaves room for the placement to grow: in a failover it has all clusters twice.
func roomFor(federated *unstructured.Unstructured, key string) int {
	left := v1beta1.MaxAnnotations - spareRoom - len(key)
	for other, value := range federated.GetAnnotations() {
		if other == key {
			continue
		}
		if other == v1beta1.PlacementAnnotation && key == v1beta1.CreatedPodsAnnotation {
			if p := v1beta1.ParsePlacement(value); p != nil && len(p.Home) == 0 {
				left -= len(value)
			}
		}
		left -= len(other) + len(value)
	}
	return left
}

// fitIngresses returns the ingresses that fit into so many bytes, as the annotation's value. First it reduces the addresses
// per cluster, then the clusters: those that serve stay. It counts what it leaves out.
func fitIngresses(s v1beta1.ServiceIngresses, most int) string {
	text, all := s.String(), s.Items
	for n := maxAddresses / 2; n > 0 && len(text) > most; n /= 2 {
		s.Items = atMost(all, n)
		s.Omitted = countOmitted(all, s.Items)
		text = s.String()
	}
	if len(text) > most {
		s.Items = firstFitting(s.Items, most-len(`{"items":[],"omitted":{"addresses":1234567,"clusters":1234567}}`))
		s.Omitted = countOmitted(all, s.Items)
		text = s.String()
	}
	if len(s.Items) == 0 && len(text) > most+spareRoom {
		return "" // not even that fits
	}
	return text
}

// atMost returns the clusters with their first n addresses.
func atMost(all []v1beta1.ClusterServiceIngress, n int) []v1beta1.ClusterServiceIngress {
	some := slices.Clone(all)
	for i := range some {
		some[i].Items = some[i].Items[:min(len(some[i].Items), n)]
	}
	return some
}

// firstFitting returns the clusters that fit into so many bytes: those that serve, those that are not seen, those with nothing
// ready; by name.
func firstFitting(all []v1beta1.ClusterServiceIngress, most int) []v1beta1.ClusterServiceIngress {
	worth := func(c v1beta1.ClusterServiceIngress) int {
		switch {
		case len(c.Items) == 0:
			return 0
		case !c.IsSeen():
			return 1
		}
		return 2
	}
	some := slices.Clone(all)
	slices.SortFunc(some, func(a, b v1beta1.ClusterServiceIngress) int {
		return cmp.Or(worth(b)-worth(a), strings.Compare(a.Cluster, b.Cluster))
	})
	for i := range some {
		text, _ := json.Marshal(some[i]) // never fails
		if most -= len(text) + len(","); most < 0 {
			return some[:i]
		}
	}
	return some
}

// countOmitted counts what is in all and not in some; nil if nothing is missing.
func countOmitted(all, some []v1beta1.ClusterServiceIngress) *v1beta1.OmittedIngresses {
	addresses := func(of []v1beta1.ClusterServiceIngress) (n int) {
		for i := range of {
			n += len(of[i].Items)
		}
		return n
	}
	left := v1beta1.OmittedIngresses{Addresses: addresses(all) - addresses(some), Clusters: len(all) - len(some)}
	if left == (v1beta1.OmittedIngresses{}) {
		return nil
	}
	return &left
}

// fittedPods returns the pods by cluster that fit into so many bytes: the largest numbers.
func fittedPods(pods map[string]int64, most int) string {
	text, _ := json.Marshal(pods) // never fails for a map of numbers
	if len(text) > most {
		names := slices.SortedFunc(maps.Keys(pods), func(a, b string) int { return cmp.Or(cmp.Compare(pods[b], pods[a]), strings.Compare(a, b)) })
		kept, size := map[string]int64{}, len("{}")
		for _, name := range names {
			one, _ := json.Marshal(map[string]int64{name: pods[name]}) // "{}" is as long as a comma and one more
			if size += len(one); size > most {
				break
			}
			kept[name] = pods[name]
		}
		text, _ = json.Marshal(kept)
		if len(kept) == 0 {
			return ""
		}
	}
	return string(text)
}
