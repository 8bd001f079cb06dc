package v1beta1

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// place is where a JSON value stands: its path as errors have it, and how to put another there.
type place struct {
	path  string
	value any
	put   func(any)
}

// placesIn returns the places of a value of a type, and of all values in it. Keys of maps are in brackets, as errors have them.
func placesIn(of reflect.Type, value any, path string, put func(any)) []place {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	all := []place{{path, value, put}}
	switch v := value.(type) {
	case []any:
		for i := range v {
			all = append(all, placesIn(of.Elem(), v[i], fmt.Sprintf("%s[%d]", path, i), func(to any) { v[i] = to })...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at, inside := path+"["+key+"]", of
			if of.Kind() == reflect.Map {
				inside = of.Elem()
			} else {
				at = path + "." + key
				for i := range of.NumField() {
					if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name == key {
						inside = of.Field(i).Type
					}
				}
			}
			all = append(all, placesIn(inside, v[key], at, func(to any) { v[key] = to })...)
		}
	}
	return all
}

// misfits are values, with their names in JSON, of which those of other types than a value do not fit where it is.
var misfits = map[string]any{"number": 7.0, "string": "x", "bool": true, "array": []any{"x"}, "object": map[string]any{"x": 1.0}}

// nameInJSON returns what JSON calls a value.
func nameInJSON(v any) string {
	switch v.(type) {
	case float64:
		return "number"
	case string:
		return "string"
	case bool:
		return "bool"
	case []any:
		return "array"
	}
	return "object"
}

// Of an annotation one value of which has the wrong type, the error says where that is, also below keys of maps and in lists, what should be there,
// and what is.
func TestDecodeSaysWhereAValueDoesNotFit(t *testing.T) {
	words := map[string]string{"number": "a whole number", "string": `a "text"`, "bool": "true or false", "array": "a list [...]", "object": "an object {...}"}
	for name, into := range map[string]func() any{
		"preferences": func() any { return &ReplicaPreferences{} },
		"selector":    func() any { return &[]ClusterSelectorRequirement{} },
		"dns":         func() any { return &DNSSettings{} },
		"placement":   func() any { return &Placement{} },
		"ingresses":   func() any { return &ServiceIngresses{} },
	} {
		r := rand.New(rand.NewPCG(3, uint64(len(name))))
		tried := map[string]bool{}
		for range 300 {
			filled := into()
			fillAny(r, reflect.ValueOf(filled).Elem())
			var value any
			if err := json.Unmarshal([]byte(asJSON(filled)), &value); err != nil {
				t.Fatal(err)
			}
			places := slices.DeleteFunc(placesIn(reflect.TypeOf(filled), value, "", func(to any) { value = to }), func(p place) bool {
				return p.value == nil || strings.HasSuffix(p.path, "At") || strings.HasSuffix(p.path, ".at") // times read themselves
			})
			at := places[r.IntN(len(places))]
			is := slices.Sorted(maps.Keys(misfits))[r.IntN(len(misfits))]
			if is == nameInJSON(at.value) {
				continue
			}
			at.put(misfits[is])
			text := asJSON(value)
			err := decodeStrict(text, into(), root)
			want := "must be " + words[nameInJSON(at.value)] + ", not a JSON " + is
			if err == nil || err.Field != root.String()+at.path || err.Detail != want || err.BadValue != text {
				t.Fatalf("%s: %s at %s of %s:\n%v, want %q", name, is, at.path, text, err, want)
			}
			tried[nameInJSON(at.value)+" is "+is] = true
		}
		if len(tried) < 8 {
			t.Errorf("%s: only %v were tried", name, slices.Sorted(maps.Keys(tried)))
		}
	}
}

// What is not one JSON value of known fields, each once, is refused as a whole; white space around it is not part of it.
func TestDecodeIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		`{"rebalance":true}`:        "",
		" \n{\"rebalance\":true}\t": "",
		`null`:                      "",
		`{"clusters":{"a":{"weight":1},"a.b":{"weight":2}}}`:        "",
		`{"rebalance":true,"rebalance":false}`:                      `duplicate field "rebalance"`,
		`{"clusters":{"a":{},"a":{}}}`:                              `duplicate field "clusters.a"`,
		`{"clusters":{"a":{"weight":1,"weight":1}}}`:                `duplicate field "clusters.a.weight"`,
		`{"rebalance":true}}`:                                       "must be JSON of the documented form",
		`{"rebalance":true} {}`:                                     "must be JSON of the documented form",
		`{"rebalance":true,}`:                                       "must be JSON of the documented form",
		`{'rebalance':true}`:                                        "must be JSON of the documented form",
		`rebalance: true`:                                           "must be JSON of the documented form",
		`{"rebalance":tru`:                                          "must be JSON of the documented form",
		`{"REBALANCE":true}`:                                        `unknown field "REBALANCE"`,
		`{"clusters":{"a":{"weights":1,"minimum":1}}}`:              `unknown field "clusters.a.weights"`,
		`{"clusters":{"a":{"weight":1e400}}}`:                       "must be a whole number, not a JSON number 1e400",
		`{"strange":[{"deep":{"x":[1,{}]}}],"rebalance":"no"}`:      "must be true or false, not a JSON string",
		`{"clusters":{"a":{"strange":{"weight":"x"},"weight":[]}}}`: "must be a whole number, not a JSON array",
	} {
		err := decodeStrict(text, &ReplicaPreferences{}, field.NewPath("a"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Detail, want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// The names of an object of DNS settings that are wrong are all told, each at its place.
func TestDNSSettingsTellAllFaults(t *testing.T) {
	label, hosts := strings.Repeat("x", 64), make([]string, maxDNSHosts+1)
	for i := range hosts {
		hosts[i] = fmt.Sprint("h-", i, ".example.com")
	}
	for name, c := range map[string]struct {
		settings DNSSettings
		want     []string
	}{
		"nothing": {DNSSettings{}, nil},
		"all that there is": {DNSSettings{Strategy: DNSNearest, TTLSeconds: new(int32(86400)), Hosts: hosts[1:],
			Clusters: map[string]DNSClusterSettings{"*": {Priority: 1000}, "a": {Weight: new(int32(0))}}}, nil},
		"too many hosts": {DNSSettings{Hosts: hosts}, []string{"dns.hosts: Too many: 101: must have at most 100 items"}},
		"a host twice":   {DNSSettings{Hosts: []string{"a.c", "a.b", "a.b"}}, []string{`dns.hosts[2]: Duplicate value: "a.b"`}},
		"a wildcard":     {DNSSettings{Hosts: []string{"*.example.com"}}, []string{`dns.hosts[0]: Invalid value: "*.example.com"`}},
		"a long label":   {DNSSettings{Hosts: []string{label + ".example.com"}}, []string{`dns.hosts[0]: Invalid value`}},
		"a long name": {DNSSettings{Hosts: []string{strings.Repeat("abcdefg.", 30) + "ab"}},
			[]string{`dns.hosts[0]: Too long: may not be more than 241 bytes`}},
		"another strategy": {DNSSettings{Strategy: "nearest"},
			[]string{`dns.strategy: Unsupported value: "nearest": supported values: "All", "Failover", "Nearest", "Weighted"`}},
		"a TTL of nothing": {DNSSettings{TTLSeconds: new(int32(0))}, []string{"dns.ttlSeconds: Invalid value: 0: must be from 1 to 86400"}},
		"numbers of clusters": {DNSSettings{Clusters: map[string]DNSClusterSettings{
			"b": {Weight: new(int32(-1)), Priority: 1001}, "a": {Priority: -1}, "c": {Priority: -2}, "d": {Priority: -3}}},
			[]string{"dns.clusters[a].priority: Invalid value: -1", "dns.clusters[b].weight: Invalid value: -1",
				"dns.clusters[b].priority: Invalid value: 1001: must be from 0 to 1000",
				"dns.clusters[c].priority: Invalid value: -2", "dns.clusters[d].priority: Invalid value: -3"}},
	} {
		var got []string
		for _, e := range c.settings.Validate(field.NewPath("dns")) {
			got = append(got, e.Error())
		}
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Whatever a check of load balancers leaves out: with the defaults it is as valid as without, they are put in once, and a question is answered
// before the next one is asked.
func TestDefaultsOfHealthChecks(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	pick := func(of ...int32) int32 { return of[r.IntN(len(of))] }
	good := 0
	for range 3000 {
		c := DNSHealthCheck{Type: []DNSHealthCheckType{"TCP", "HTTP", "HTTPS"}[r.IntN(3)], Port: pick(0, 0, 80, 65535), PeriodSeconds: pick(0, 0, 1, 7,
			3600), TimeoutSeconds: pick(0, 0, 1, 5, 9),
			FailureThreshold: pick(0, 1, 10, 11), SuccessThreshold: pick(0, 1, 10), InsecureSkipVerify: r.IntN(4) == 0}
		if r.IntN(2) == 0 {
			c.Host, c.Path = "a.example.com", "/healthz"
		}
		d := c.WithDefaults()
		if d.WithDefaults() != d {
			t.Fatalf("%+v has the defaults %+v, and these others", c, d)
		}
		faults, after := c.validate(field.NewPath("a")), d.validate(field.NewPath("a"))
		if len(faults) == 0 {
			good++
			if len(after) > 0 {
				t.Fatalf("%+v is valid, with defaults it is not: %v", c, after)
			}
			if d.Port < 1 || d.TimeoutSeconds < 1 || d.TimeoutSeconds > 5 || d.TimeoutSeconds > d.PeriodSeconds || (d.Path != "") != (d.Type != DNSHealthCheckTCP) {
				t.Fatalf("%+v is used as %+v", c, d)
			}
		}
	}
	if good < 200 || good > 2800 {
		t.Errorf("%d of 3000 are good: this says little", good)
	}
	for kind, want := range map[DNSHealthCheckType]DNSHealthCheck{
		"TCP":   {Type: "TCP", PeriodSeconds: 10, TimeoutSeconds: 2, FailureThreshold: 3, SuccessThreshold: 2},
		"HTTP":  {Type: "HTTP", Port: 80, Path: "/", PeriodSeconds: 10, TimeoutSeconds: 2, FailureThreshold: 3, SuccessThreshold: 2},
		"HTTPS": {Type: "HTTPS", Port: 443, Path: "/", PeriodSeconds: 10, TimeoutSeconds: 2, FailureThreshold: 3, SuccessThreshold: 2},
	} {
		if got := (DNSHealthCheck{Type: kind}).WithDefaults(); got != want {
			t.Errorf("%s: %+v, want %+v", kind, got, want)
		}
	}
}
