package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// kubernetes are metrics that API servers of Kubernetes have, ours too, with the labels that alerts name.
var kubernetes = map[string][]string{"etcd_request_duration_seconds_bucket": {"le"}, "apiserver_client_certificate_expiration_seconds_bucket": {"le"}, "kubernetes_build_info": {"git_version"}}

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
	for name, labels := range kubernetes {
		all[name] = append(labels, "job", "instance", "")
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
			names := regexp.MustCompile("(?:federation|etcd|apiserver|kubernetes)_[a-z_]+").FindAllString(r.Expr, -1)
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
			if len(names) == 0 || seen[r.Alert] || !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) || r.Annotations["summary"] == "" || r.Annotations["action"] == "" || r.Annotations["runbook"] != "docs/runbooks/"+r.Alert+".md" {
				t.Errorf("%s: %+v", r.Alert, r)
			}
			seen[r.Alert] = true
		}
	}
	if pages := namesOf(t, "../../docs/runbooks/Federation*.md"); len(pages) != len(seen) || slices.ContainsFunc(pages, func(page string) bool { return !seen[page] }) {
		t.Errorf("docs/runbooks has pages of %v, and there are the alerts %v", pages, seen)
	}
	if tested := firing(t); len(tested) != len(seen) || slices.ContainsFunc(tested, func(alert string) bool { return !seen[alert] }) {
		t.Errorf("alerts_rules.yaml sees %v fire, and there are the alerts %v", tested, seen)
	}
	for _, alert := range []string{"FederationNotSurvivable", "FederationDrillLongAgo", "FederationDrillNotRolledBack", "FederationReadinessStale"} {
		if !seen[alert] {
			t.Errorf("there is no alert %s", alert)
		}
	}
}

// namesOf are the names of the files of a pattern, without what follows the dot.
func namesOf(t *testing.T, pattern string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		names = append(names, name)
	}
	return names
}

// firing are the alerts that alerts_rules.yaml sees fire.
func firing(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("alerts_rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`alertname="(\w+)"`).FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(names, found[1]) {
			names = append(names, found[1])
		}
	}
	return names
}

// TestAlertsFireAndClear: Prometheus' own tool tests the rules with series in which each is so for a while, and finds nothing wrong with them.
func TestAlertsFireAndClear(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not there: Debian has it in the package prometheus, and hack/install-tools.sh tests installs it")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_rules.yaml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	// The tests notice what is wrong: a rule that fires too late, and one that never does.
	text, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("alerts_rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{{"for: 2m", "for: 20m"}, {"federation_clusters_failed_over) > 0", "federation_clusters_failed_over) > 9"}} {
		dir := t.TempDir()
		for file, content := range map[string]string{"alerts.yaml": strings.ReplaceAll(string(text), change[0], change[1]), "alerts_rules.yaml": string(rules)} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command(promtool, "test", "rules", filepath.Join(dir, "alerts_rules.yaml")).CombinedOutput(); err == nil {
			t.Errorf("the tests pass where %q is %q: %s", change[0], change[1], out)
		}
	}
}
