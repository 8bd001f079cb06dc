package v1beta1

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// The summary of a decision begins with what matters most: whether all clusters have it, which numbers changed, how many more, and what fits nowhere.
func TestPlacementDecisionsAreTold(t *testing.T) {
	for want, d := range map[string]PlacementDecision{
		"":                           {Cause: "created"},
		"to every cluster":           {Everywhere: new(true)},
		"no longer to every cluster": {Everywhere: new(false)},
		"east-a 20→0, east-b 5→15":   {Changes: []PlacementChange{{Cluster: "east-a", From: 20}, {Cluster: "east-b", From: 5, To: 15}}},
		"a 0→1, overflow of a 3→2":   {Changes: []PlacementChange{{Cluster: "a", To: 1}, {Cluster: "a", From: 3, To: 2, Overflow: true}}},
		"a 0→1, and 7 more":          {Changes: []PlacementChange{{Cluster: "a", To: 1}}, OmittedChanges: 7},
		"0 unschedulable":            {Unschedulable: new(int64(0))},
		"no longer to every cluster, a 1→0, and 2 more, 5 unschedulable": {
			Everywhere: new(false), Changes: []PlacementChange{{Cluster: "a", From: 1}}, OmittedChanges: 2, Unschedulable: new(int64(5))},
	} {
		if got := d.Summary(); got != want {
			t.Errorf("%+v: %q, want %q", d, got, want)
		}
	}
}

// What the federation decided and observed is read as it was written, and written the same each time.
func TestDecisionsAreReadAsTheyAreWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	for range 200 {
		p, s, o, d := &Placement{}, &ServiceIngresses{}, &OutOfSync{}, &Drain{}
		for _, v := range []any{p, s, o, d} {
			fillAny(r, reflect.ValueOf(v).Elem())
		}
		if got := ParsePlacement(p.String()); !equality.Semantic.DeepEqual(got, p) || got.String() != p.String() || p.String() != p.DeepCopy().String() {
			t.Fatalf("%s\nis read as %+v", p, got)
		}
		text := s.String()
		if got := ParseServiceIngresses(text); text != "" && (!equality.Semantic.DeepEqual(&got, s) || got.String() != text) {
			t.Fatalf("%s\nis read as %+v", text, got)
		}
		if got := ParseOutOfSync(o.String()); !equality.Semantic.DeepEqual(got, o) {
			t.Fatalf("%s\nis read as %+v", o, got)
		}
		if got, err := ParseDrain(d.String()); err != nil || !equality.Semantic.DeepEqual(got, d) {
			t.Fatalf("%s\nis read as %+v, %v", d, got, err)
		}
	}
	for _, pending := range []string{"", PlacementPending, "{", "[]", `{"clusters":{"a":"1"}}`, `{"clusters":{"a":0.5}}`, "7"} {
		if got := ParsePlacement(pending); got != nil {
			t.Errorf("placement %q is taken as %+v", pending, got)
		}
	}
	for value, want := range map[string]map[string]int64{"": nil, "{": nil, "[]": nil, `{"a":"1"}`: nil, `{}`: {}, `{"a":3,"b":0}`: {"a": 3, "b": 0}} {
		if got := ParseCreatedPods(value); !maps.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("created pods %q are taken as %v, want %v", value, got, want)
		}
	}
}

// Whatever order clusters come in, the annotation has them sorted, and the same text; nothing is no text. An entry that is stale and has nothing
// says that nobody knows.
func TestServiceIngressesAreSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	for range 200 {
		var s ServiceIngresses
		for i := range r.IntN(6) {
			s.Items = append(s.Items, ClusterServiceIngress{Cluster: fmt.Sprint("c-", i), Items: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}[:r.IntN(2)]})
		}
		want := s.String()
		r.Shuffle(len(s.Items), func(i, j int) { s.Items[i], s.Items[j] = s.Items[j], s.Items[i] })
		if got := s.String(); got != want || (got == "") != (len(s.Items) == 0) {
			t.Fatalf("%s, and in another order %s", want, got)
		}
		if read := ParseServiceIngresses(want); !slices.IsSortedFunc(read.Items, func(a, b ClusterServiceIngress) int {
			return strings.Compare(a.Cluster,
				b.Cluster)
		}) {
			t.Fatalf("%s is not sorted", want)
		}
	}
	if got := (ServiceIngresses{Omitted: &OmittedIngresses{Clusters: 2}}).String(); !strings.Contains(got, `"clusters":2`) {
		t.Errorf("%s does not say that 2 clusters are left out", got)
	}
	serves := []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	for name, c := range map[string]struct {
		entry       ClusterServiceIngress
		seen, known bool
	}{
		"serves":                       {ClusterServiceIngress{Items: serves}, true, true},
		"serves, as is seen":           {ClusterServiceIngress{Items: serves, Seen: new(true)}, true, true},
		"serves, as was seen":          {ClusterServiceIngress{Items: serves, Seen: new(false)}, false, true},
		"serves nothing":               {ClusterServiceIngress{}, true, true},
		"is not known":                 {ClusterServiceIngress{Seen: new(false)}, false, false},
		"was seen, and served nothing": {ClusterServiceIngress{Items: serves[:0], Seen: new(false)}, false, true},
	} {
		if c.entry.IsSeen() != c.seen || c.entry.IsKnown() != c.known {
			t.Errorf("%s: seen %t, known %t", name, c.entry.IsSeen(), c.entry.IsKnown())
		}
	}
}

// A cluster has its own preferences or settings where there are some under its name, also empty ones, else those of all; without either it has none.
func TestPreferencesOfAClusterAreItsOwn(t *testing.T) {
	own, all := ClusterPreferences{Weight: 2}, ClusterPreferences{MinReplicas: 1}
	for name, c := range map[string]struct {
		clusters map[string]ClusterPreferences
		want     ClusterPreferences
		ok       bool
	}{
		"none":                     {nil, ClusterPreferences{}, false},
		"its own":                  {map[string]ClusterPreferences{"a": own}, own, true},
		"those of all":             {map[string]ClusterPreferences{"*": all, "b": own}, all, true},
		"its own before all":       {map[string]ClusterPreferences{"*": all, "a": own}, own, true},
		"its own, which are empty": {map[string]ClusterPreferences{"*": all, "a": {}}, ClusterPreferences{}, true},
		"another's":                {map[string]ClusterPreferences{"b": own}, ClusterPreferences{}, false},
	} {
		p, s := &ReplicaPreferences{Clusters: c.clusters}, &DNSSettings{Clusters: map[string]DNSClusterSettings{}}
		for cluster, of := range c.clusters {
			s.Clusters[cluster] = DNSClusterSettings{Priority: int32(of.Weight*10 + of.MinReplicas)}
		}
		if got, ok := p.ForCluster("a"); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %t, want %+v, %t", name, got, ok, c.want, c.ok)
		}
		if got := s.ForCluster("a").Priority; got != int32(c.want.Weight*10+c.want.MinReplicas) {
			t.Errorf("%s: priority %d of %+v", name, got, s.Clusters)
		}
	}
	if got, ok := DefaultReplicaPreferences().ForCluster("any"); !ok || got != (ClusterPreferences{Weight: 1}) || DefaultReplicaPreferences().Rebalance {
		t.Errorf("by default: %+v, %t", got, ok)
	}
}

// ParseInfo reads what the federation publishes; its error names the key of a value that is missing or is not a number.
func TestInfoIsReadWhateverItIs(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	duration := func() time.Duration { return time.Duration(r.IntN(100000)) * time.Millisecond }
	for range 300 {
		i := Info{Name: "fed", DNSZone: "example.com", DNSTTL: duration(), FailoverMaxZones: r.IntN(20) - 5, FailoverWindow: duration(),
			CrossClusterEndpoints: r.IntN(2) == 0,
			ClusterSetIPRanges:    []string{"", "10.0.0.0/8,fd00::/64"}[r.IntN(2)], MemberTokenLifetime: duration(), PublicAddressesOnly: r.IntN(2) == 0}
		if got, err := ParseInfo(i.ConfigMapData()); err != nil || got != i {
			t.Fatalf("%+v is read as %+v, %v", i, got, err)
		}
	}
	good := Info{Name: "fed", DNSZone: "example.com"}
	for key, values := range map[string][]string{"name": {""}, "dnsZone": {""}, "dnsTTL": {"", "x", "15"}, "failoverMaxZones": {"", "x", "-"},
		"failoverWindow": {"", "x", "-1ns"}, "memberTokenLifetime": {"", "1", "-1h"}} {
		for _, value := range values {
			data := good.ConfigMapData()
			data[key] = value
			if got, err := ParseInfo(data); err == nil || !strings.Contains(err.Error(), "federation-system/federation-info: "+key) {
				t.Errorf("%s %q: %+v, %v", key, value, got, err)
			}
		}
	}
	for _, key := range []string{"failoverWindow", "memberTokenLifetime", "crossClusterEndpoints", "clusterSetIPRanges", "dnsPublicAddressesOnly"} {
		data := good.ConfigMapData()
		if delete(data, key); key != "crossClusterEndpoints" {
			if got, err := ParseInfo(data); err != nil || got != good {
				t.Errorf("without %s: %+v, %v", key, got, err)
			}
		} else if got, err := ParseInfo(data); err != nil || !got.CrossClusterEndpoints {
			t.Errorf("without %s: %+v, %v", key, got, err)
		}
	}
}

// DNS providers are read by name, each with its condition; of one that is none the error names the key.
func TestDNSProvidersAreRead(t *testing.T) {
	data := map[string]string{
		"route53": `{"type":"Published","status":"False","reason":"Refused","message":"no such zone","lastTransitionTime":"2026-01-02T03:04:05Z"}`,
		"builtin": `{"type":"Published","status":"True","reason":"Published","lastTransitionTime":"2026-01-01T00:00:00Z"}`,
		"unsure":  `{"status":"Unknown"}`,
	}
	all, err := ReadDNSProviders(data)
	var got []string
	for _, p := range all {
		got = append(got, fmt.Sprint(p.Name, " ", p.Published, " ", p.Reason, " ", p.Message, " ", p.Since.UTC().Format(time.RFC3339)))
	}
	want := []string{"builtin true Published  2026-01-01T00:00:00Z", "route53 false Refused no such zone 2026-01-02T03:04:05Z",
		"unsure false   0001-01-01T00:00:00Z"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	data["broken"] = "{"
	if all, err := ReadDNSProviders(data); all != nil || err == nil || !strings.Contains(err.Error(), "federation-system/federation-dns-providers: broken: ") {
		t.Errorf("%v, %v, want an error that names the key", all, err)
	}
	if all, err := ReadDNSProviders(nil); len(all) > 0 || err != nil {
		t.Errorf("of nothing: %v, %v", all, err)
	}
}
