package plan

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

var update = flag.Bool("update", false, "write what comes out into testdata/rows")

// sections parses a file of testdata: a text, then parts that begin with a line "-- name --".
func sections(t *testing.T, path string) (text string, names []string, parts map[string]string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parts = map[string]string{}
	name := ""
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "-- ") {
			name = strings.Trim(line, "- \n")
			names = append(names, name)
		} else if name == "" {
			text += line
		} else {
			parts[name] += line
		}
	}
	return text, names, parts
}

// TestSecretsWaitForAPlacement checks that without one they go nowhere, unless they have a selector of their own.
func TestSecretsWaitForAPlacement(t *testing.T) {
	for annotations, want := range map[string]Presence{
		`{}`: Undecided,
		`{"federation.kubernetes.io/placement":"pending"}`:                                                       Undecided,
		`{"federation.kubernetes.io/placement":"{\"clusters\":{}}"}`:                                             Absent,
		`{"federation.kubernetes.io/placement":"{\"clusters\":{\"east-a\":1}}"}`:                                 Present,
		`{"federation.kubernetes.io/placement":"{\"clusters\":{},\"everywhere\":true}"}`:                         Present,
		`{"federation.alpha.kubernetes.io/cluster-selector":"[{\"key\":\"no\",\"operator\":\"DoesNotExist\"}]"}`: Present,
		`{"federation.alpha.kubernetes.io/cluster-selector":"[{\"key\":\"no\",\"operator\":\"Exists\"}]"}`:       Absent,
	} {
		for _, name := range []string{"Secret", "ServiceAccount"} {
			u := parse(t, `{"apiVersion":"v1","kind":"`+name+`","metadata":{"name":"s","namespace":"shop","annotations":`+annotations+`}}`)
			if d := Desire(source(kind(t, name), u), east); d.Presence != want {
				t.Errorf("%s with %s: presence %d (%s), want %d", name, annotations, d.Presence, d.Reason, want)
			}
		}
	}
}

// Each row has a file: a federated object and its copies, what east-a is sent, and the federated object's status. A row of v1beta1.FederatedKinds is
// all that a made-up kind needs.
func TestRows(t *testing.T) {
	all := rowsOf(append(slices.Clone(v1beta1.FederatedKinds), v1beta1.FederatedKind{
		Resource: schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}, Kind: "Widget", Preferences: "example.org/widget-preferences", Replicas: "size",
	}))
	for i := range all {
		k := &all[i]
		path := filepath.Join("testdata", "rows", strings.ToLower(k.Kind)+".txt")
		t.Run(k.Kind, func(t *testing.T) {
			text, names, parts := sections(t, path)
			federated := parse(t, parts["federated"])
			var copies []Copy
			for _, name := range []string{"east-a", "west-a"} {
				if parts[name] != "" {
					copies = append(copies, Copy{Cluster: name, State: Synced, Looked: federated.GetGeneration(), Object: parse(t, "apiVersion: "+k.Resource.GroupVersion().String()+"\nkind: "+k.Kind+"\n"+parts[name])})
				}
			}
			got := map[string]string{"sent": asYAML(t, Desire(source(k, federated), east).Object.Object)}
			if s := Summarize(k, federated, copies, "2026-01-03T00:00:00Z"); !s.Empty() {
				got["summary"] = asYAML(t, s.Patch())
			}
			if !*update {
				for _, name := range []string{"sent", "summary"} {
					if got[name] != parts[name] {
						t.Errorf("%s\n%s\nwant\n%s", name, got[name], parts[name])
					}
				}
				return
			}
			for _, name := range names {
				if name != "sent" && name != "summary" {
					text += "-- " + name + " --\n" + parts[name]
				}
			}
			for _, name := range []string{"sent", "summary"} {
				if got[name] != "" {
					text += "-- " + name + " --\n" + got[name]
				}
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	b, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
