package manifests

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// panel is one of a dashboard of Grafana.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat string }
}

// TestDashboards: each metric in a panel is one of the code and each label one of a metric in it, Prometheus can read each expression, and no panel lies
// over another.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	metrics, uids := documented(t), map[string]bool{}
	metrics["process_resident_memory_bytes"] = []string{"instance", "job"} // of any process
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			UID, Title string
			Panels     []panel
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(file, err)
		}
		if board.UID == "" || board.Title == "" || uids[board.UID] {
			t.Errorf("%s: uid %q, title %q", file, board.UID, board.Title)
		}
		uids[board.UID] = true
		for i, p := range board.Panels {
			for _, target := range p.Targets {
				for _, wrong := range faults(metrics, target.Expr, target.LegendFormat) {
					t.Errorf("%s, %q: %s: %s", file, p.Title, target.Expr, wrong)
				}
			}
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s, %q: shows nothing", file, p.Title)
			}
			for _, q := range board.Panels[:i] {
				if a, b := p.GridPos, q.GridPos; p.ID == q.ID || a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: %q lies over %q, or has its number", file, p.Title, q.Title)
				}
			}
		}
		readable(t, file, board.Panels)
	}
	if wrong := faults(metrics, `sum by (colour) (federation_cluster_raedy{x="y"})`, "{{cluster}}"); len(wrong) != 4 {
		t.Errorf("of an expression in which all is wrong, only this is: %q", wrong)
	}
}

// faults are the metrics and labels in an expression, and in what its lines are called, that there are not.
func faults(metrics map[string][]string, expr, legend string) (wrong []string) {
	labels := []string{"le", "instance", "job"}
	for _, name := range regexp.MustCompile(`\b(?:federation|process)_[a-z_]+`).FindAllString(expr, -1) {
		metric := regexp.MustCompile(`_(?:bucket|sum|count)$`).ReplaceAllString(name, "")
		if metrics[metric] == nil {
			wrong = append(wrong, "there is no metric "+name)
		}
		labels = append(labels, metrics[metric]...)
	}
	for _, list := range regexp.MustCompile(`(?:by|on) \(([a-z, ]*)\)|\{\{([a-z]+)\}\}|\{([a-z]+)=`).FindAllStringSubmatch(expr+legend, -1) {
		for _, label := range strings.FieldsFunc(strings.Join(list[1:], ","), func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(labels, label) {
				wrong = append(wrong, "no metric in it has the label "+label)
			}
		}
	}
	return wrong
}

// readable has Prometheus' own tool read each expression, as a rule.
func readable(t *testing.T, file string, panels []panel) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not there: hack/install-tools.sh tests installs it")
	}
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, p := range panels {
		for i, target := range p.Targets {
			rules = append(rules, rule{fmt.Sprintf("panel_%d_%d", p.ID, i), strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", to).CombinedOutput(); err != nil {
		t.Errorf("%s: promtool: %v: %s", file, err, out)
	}
}
