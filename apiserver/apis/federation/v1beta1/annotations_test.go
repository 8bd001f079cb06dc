package v1beta1

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var root = field.NewPath("metadata", "annotations").Key("a")

// preferences maps values to what is said of them, without the path of the annotation: "" for good ones.
var preferences = map[string]string{
	`{}`: "",
	`{"rebalance": true, "clusters": {"k8s-1": {"minReplicas": 10, "maxReplicas": 20, "weight": 2}, "*": {"weight": 1}}}`: "",
	`{"clusters": null}`:                                        "",
	`{"clusters": {"a": {"maxReplicas": null}}}`:                "",
	`{"clusters": {"a": {"minReplicas": 2, "maxReplicas": 2}}}`: "",
	` {"clusters": {"a": {"weight": 2147483647}}} `:             "",
	``:      `: Invalid value: "": must be JSON`,
	`{`:     `must be JSON`,
	`{} {}`: `must be JSON`,
	`{"clusters": {"east-a": {"weight": "much"}}}`:                  `.clusters[east-a].weight: Invalid value`,
	`{"clusters": {"east-a": {"weight": 1}, "b": {"weight": 1.5}}}`: `.clusters[b].weight: Invalid value`,
	`{"clusters": {"a": {"weight": 1}, "b": {"maxReplicas": [1]}}}`: `.clusters[b].maxReplicas: Invalid value`,
	`{"clusters": {"a": {"minReplicas": {"x": 1}}}}`:                `.clusters[a].minReplicas: Invalid value`,
	`{"clusters": {"a": {"minReplicas": {}}}}`:                      `.clusters[a].minReplicas: Invalid value`,
	`{"clusters": {"a.b": {"weight": 99999999999999999999}}}`:       `.clusters[a.b].weight: Invalid value`,
	`{"clusters": {"a": 7}}`:                                        `.clusters[a]: Invalid value`,
	`{"clusters": [{"weight": 1}]}`:                                 `.clusters: Invalid value`,
	`{"rebalance": "yes", "clusters": {}}`:                          `.rebalance: Invalid value`,
	`{"strange": {"x": [1]}, "clusters": {"a": {"weight": true}}}`:  `.clusters[a].weight: Invalid value`,
	`[]`:                                     `: Invalid value`,
	`7`:                                      `: Invalid value`,
	`{"wieght": 1}`:                          `unknown field "wieght"`,
	`{"clusters": {"east-a": {"wieght":1}}}`: `unknown field "clusters.east-a.wieght"`,
	`{"Clusters": {}}`:                       `unknown field "Clusters"`,
	`{"clusters": {"a": {"weight": -1}}}`:    `.clusters[a].weight: Invalid value: -1: must be from 0 to 2147483647`,
	`{"clusters": {"a": {"weight": 2147483648}}}`:                   `.clusters[a].weight: Invalid value: 2147483648`,
	`{"clusters": {"a": {"minReplicas": 3, "maxReplicas": 2}}}`:     `.clusters[a].minReplicas: Invalid value: 3: must be no more than maxReplicas (2)`,
	`{"clusters": {"a": {"minReplicas": -1, "maxReplicas": -2}}}`:   `.clusters[a].maxReplicas: Invalid value: -2`,
	`{"clusters": {"a": {"weight": -1}, "b": {"minReplicas": -1}}}`: `.clusters[b].minReplicas: Invalid value: -1`,
}

var selectors = map[string]string{
	`[]`: "", `null`: "",
	`[{"key": "tier", "operator": "In", "values": ["gold", "silver"]}]`:        "",
	`[{"key": "tier", "operator": "notin", "values": ["gold"]}]`:               "",
	`[{"key": "tier", "operator": "Exists"}, {"key": "x/y", "operator": "!"}]`: "",
	`[{"key": "n", "operator": ">", "values": ["3"]}]`:                         "",
	`{}`:                                 `: Invalid value`,
	``:                                   `must be JSON`,
	`[{"key": 7, "operator": "Exists"}]`: `[0].key: Invalid value`,
	`[{"key": "a", "operator": "Exists"}, "b"]`:                                                `[1]: Invalid value`,
	`[{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "In", "values": ["x", 1]}]`: `[1].values[1]: Invalid value`,
	`[{"key": "a", "operator": "In", "values": "x"}]`:                                          `[0].values: Invalid value`,
	`[{"key": "a", "operator": "Near"}]`:                                                       `[0].operator: Unsupported value: "Near"`,
	`[{"key": "a"}]`:                                                                           `[0].operator: Unsupported value: ""`,
	`[{"key": "a", "operator": "In"}]`:                                                         `[0].values: Invalid value`,
	`[{"key": "a", "operator": "Exists", "values": ["x"]}]`:                                    `[0].values: Invalid value`,
	`[{"key": "a", "operator": "=", "values": ["x", "y"]}]`:                                    `[0].values: Invalid value`,
	`[{"key": "a", "operator": "Gt", "values": ["many"]}]`:                                     `[0].values[0]: Invalid value`,
	`[{"key": "a b", "operator": "Exists"}]`:                                                   `[0].key: Invalid value`,
	`[{"key": "a", "operator": "Exists", "value": 1}]`:                                         `unknown field "[0].value"`,
}

func TestParseReplicaPreferences(t *testing.T) {
	for value, want := range preferences {
		got, errs := ParseReplicaPreferences(value, root)
		says(t, value, want, got != nil, errs)
	}
}

func TestParseClusterSelector(t *testing.T) {
	for value, want := range selectors {
		got, errs := ParseClusterSelector(value, root)
		says(t, value, want, got != nil, errs)
	}
}

// says checks that one of the errors is as wanted, at its path, and that there is a result or an error, not both.
func says(t *testing.T, value, want string, result bool, errs field.ErrorList) {
	t.Helper()
	if result == (len(errs) > 0) || (want == "") != result {
		t.Errorf("%s: result %v, errors %v, want %q", value, result, errs, want)
		return
	}
	if path := strings.HasPrefix(want, ".") || strings.HasPrefix(want, "[") || strings.HasPrefix(want, ":"); path {
		want = root.String() + want
	}
	if want != "" && !slices.ContainsFunc(errs, func(e *field.Error) bool { return strings.Contains(e.Error(), want) }) {
		t.Errorf("%s: %v, want %q", value, errs, want)
	}
}

func FuzzParseReplicaPreferences(f *testing.F) {
	for value := range preferences {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		p, errs := ParseReplicaPreferences(value, root)
		checkErrors(t, p != nil, errs)
		if p == nil {
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, errs := ParseReplicaPreferences(string(again), root); len(errs) > 0 {
			t.Errorf("%s is taken, but not as it was read: %s: %v", value, again, errs)
		}
		for _, c := range p.Clusters {
			if c.MinReplicas < 0 || c.Weight < 0 || c.MaxReplicas != nil && *c.MaxReplicas < c.MinReplicas {
				t.Errorf("%s is taken as %+v", value, c)
			}
		}
	})
}

func FuzzParseClusterSelector(f *testing.F) {
	for value := range selectors {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		s, errs := ParseClusterSelector(value, root)
		checkErrors(t, s != nil, errs)
		if s == nil {
			return
		}
		s.Matches(labels.Set{"tier": "gold"})
		if _, err := labels.Parse(s.String()); err != nil {
			t.Errorf("%s is taken as %s: %v", value, s, err)
		}
	})
}

// checkErrors holds for all input: a result or errors, and each error is in the annotation.
func checkErrors(t *testing.T, result bool, errs field.ErrorList) {
	t.Helper()
	if result == (len(errs) > 0) {
		t.Errorf("result %v, errors %v", result, errs)
	}
	for _, e := range errs {
		if !strings.HasPrefix(e.Field, root.String()) {
			t.Errorf("the error is nowhere: %v", e)
		}
	}
}
