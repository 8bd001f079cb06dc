package manifests

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// documented are the labels of each metric, as docs/reference has them, which is made from the code: make verify fails where it is stale.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]* ?\\| (.*?) ?\\|").FindAllStringSubmatch(string(text), -1) {
		for _, label := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[2], -1) {
			all[row[1]] = append(all[row[1]], label[1])
		}
		all[row[1]] = append(all[row[1]], "")
	}
	if len(all) < 30 {
		t.Fatalf("docs/reference/metrics.md has %d metrics", len(all))
	}
	return all
}

// Each metric that an alert names is one of the code, each label that it goes by is one of a metric in it, and each alert says what to do.
func TestAlertsAreOfMetricsThatThereAre(t *testing.T) {
	text, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalStrict(text, &rules); err != nil {
		t.Fatal(err)
	}
	metrics, seen := documented(t), map[string]bool{}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			var labels []string
			names := regexp.MustCompile("federation_[a-z_]+").FindAllString(r.Expr, -1)
			for _, name := range names {
				if metrics[name] == nil {
					t.Errorf("%s: there is no metric %s", r.Alert, name)
				}
				labels = append(labels, metrics[name]...)
			}
			for _, list := range regexp.MustCompile(`(?:by|on) \(([a-z, ]*)\)|\{([a-z]+)=`).FindAllStringSubmatch(r.Expr, -1) {
				for _, label := range strings.Split(list[1]+list[2], ", ") {
					if !slices.Contains(append(labels, ""), label) {
						t.Errorf("%s: no metric in it has the label %s", r.Alert, label)
					}
				}
			}
			if len(names) == 0 || seen[r.Alert] || !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) || r.Annotations["summary"] == "" || r.Annotations["action"] == "" {
				t.Errorf("%s: %+v", r.Alert, r)
			}
			seen[r.Alert] = true
		}
	}
	for _, alert := range []string{"FederationNotSurvivable", "FederationDrillLongAgo", "FederationDrillNotRolledBack", "FederationReadinessStale"} {
		if !seen[alert] {
			t.Errorf("there is no alert %s", alert)
		}
	}
}
