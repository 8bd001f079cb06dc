package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// prometheus is a real one that scrapes the federation and has our alerts.
type prometheus struct{ address string }

const prometheusConfig = `
global: {scrape_interval: 2s, evaluation_interval: 1s} # a scrape takes at most its interval
rule_files: [%s]
scrape_configs:
- job_name: federation
  scheme: https
  static_configs: [{targets: ['%s']}]
  tls_config: {ca_file: '%s', cert_file: '%s', key_file: '%s'}
`

// startPrometheus runs one with the alerts of a file, which scrapes the federation and what more scrape_configs name. It returns once it has metrics of the federation.
func startPrometheus(t *testing.T, rules, more string) prometheus {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not there: hack/install-tools.sh tests installs it")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yaml")
	pki := filepath.Join(s.dir, "federation", "pki")
	text := fmt.Sprintf(prometheusConfig, rules, strings.TrimPrefix(s.fed.config.Host, "https://"),
		filepath.Join(pki, "ca.crt"), filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key")) + more
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := prometheus{"127.0.0.1:" + freePort(t)}
	cmd := exec.Command(binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.address)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	eventually(t, time.Minute, func() string {
		if n, err := p.count("federation_component_up"); err != nil || n == 0 {
			said, _ := os.ReadFile(log.Name())
			return fmt.Sprintf("Prometheus has %d series of the federation: %v\n%s", n, err, said)
		}
		return ""
	})
	return p
}

// count is how many series an expression has now.
func (p prometheus) count(expr string) (int, error) {
	resp, err := http.Get("http://" + p.address + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
		return 0, fmt.Errorf("%s: %v: %s", expr, err, body)
	}
	return len(answer.Data.Result), nil
}

// firing waits until an alert fires, or does so no longer; with labels only that of these, as cluster="east-a".
func (p prometheus) firing(t *testing.T, alert string, want bool, labels ...string) time.Duration {
	t.Helper()
	expr := `ALERTS{` + strings.Join(append(labels, `alertstate="firing"`, `alertname="`+alert+`"`), ",") + `}`
	return eventually(t, 3*time.Minute, func() string {
		if n, err := p.count(expr); err != nil || (n > 0) != want {
			return fmt.Sprintf("%s: %d series, %v; want that it fires: %t", expr, n, err, want)
		}
		return ""
	})
}

// rare are metrics that come with what is rare: a part that failed, a drill, a key, a check, a change of a record by somebody else.
var rare = []string{"federation_drill", "federation_dnssec", "federation_dns_health_check_duration", "federation_dns_drift", "federation_component_restarts", "federation_component_panics", "federation_failover_events", "federation_shards"}

// TestPrometheus scrapes the federation: alerts are quiet while all is well, one fires while a cluster is away and clears when it is back, and each panel
// of the dashboards has data, save those of what is rare. TestAlerts has all alerts fire, of rules in which less time passes.
func TestPrometheus(t *testing.T) {
	p := startPrometheus(t, filepath.Join(s.root, "hack/manifests/alerts.yaml"), "")
	p.firing(t, "FederationDown", false)
	// Something to place, write and name, before and after the cluster is lost.
	web, err := os.ReadFile(filepath.Join(s.root, "hack/demo/web.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	apply(t, string(web))
	resume := s.stop(t, "west-a")
	after := p.firing(t, "FederationClusterNotReady", true)
	if after < time.Minute {
		t.Errorf("FederationClusterNotReady fired after %s, and is to wait for a minute", after)
	}
	p.firing(t, "FederationClusterFailedOver", true)
	resume()
	cleared := p.firing(t, "FederationClusterNotReady", false)
	t.Logf("FederationClusterNotReady fired %s after the cluster had stopped, and cleared %s after it ran again", after, cleared)
	p.showsPanels(t)
}

// showsPanels checks that each panel of the dashboards has data, save those of what is rare.
func (p prometheus) showsPanels(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.root, "hack/manifests/dashboards/*.json"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	panels, empty := 0, []string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(err)
		}
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				panels++
				isRare := slices.ContainsFunc(rare, func(m string) bool { return strings.Contains(target.Expr, m) })
				n, err := p.count(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
				if err != nil || n == 0 && !isRare {
					t.Errorf("%s, %q: %s: %d series, %v", filepath.Base(file), panel.Title, target.Expr, n, err)
				} else if n == 0 {
					empty = append(empty, panel.Title)
				}
			}
		}
	}
	t.Logf("%d expressions of dashboards; without data, as what they show is rare: %q", panels, empty)
}
