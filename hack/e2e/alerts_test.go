package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"federation/dnsprovider/servertest"
)

// elsewhere are the alerts that do not fire in TestAlerts, each with why; hack/manifests has them fire in TestAlertsFireAndClear, of series that are made up.
var elsewhere = map[string]string{
	"FederationReadinessStale": "a domain in which something has changed is evaluated a minute later, and what is said of the others is so until now. For an evaluation to wait for an hour, those of all domains have to take more " +
		"than a seventeenth of a core in that hour, three minutes and a half of CPU time. A part that does not run says nothing, which is FederationReadinessAbsent; a process that hangs is not scraped, which is FederationDown",
}

// alerts are those of a real Prometheus, and which of them have fired and cleared.
type alerts struct {
	prometheus
	fired, cleared map[string]bool
}

// TestAlerts has each alert of hack/manifests/alerts.yaml fire and clear in a real Prometheus, by a fault of real processes that it is for; `elsewhere` has what does not, and why. It takes ten
// minutes, so `make e2e-alerts` runs it.
//
// The rules are those of the file but for the time that they wait: each `for` is over sixty times as soon, and three look back a minute, not an hour or five minutes. Nothing else in an expression is
// changed: no drill in 90 days is never, federation-dns is cut off for five minutes, and most writes to a member are refused of those of five minutes.
func TestAlerts(t *testing.T) {
	if os.Getenv("E2E_LONG") == "" {
		t.Skip("runs with E2E_LONG=1: make e2e-alerts")
	}
	if pullMode {
		t.Skip("clusters join here without an agent")
	}
	home(t)
	serve(t, "alerts", 6)
	server := startNameServer(t, dnsKubeconfig(t), "federation-dns-alerts")
	server.ready(t)
	letRead := forbidNameServers(t)
	beside, balancer := startBeside(t), "127.0.0.1:"+freePort(t)
	rules, all := quickRules(t)
	a := &alerts{startPrometheus(t, rules, scraped("federation-dns", server.health)+scraped("federation-lb", balancer)+beside.scraped()), map[string]bool{}, map[string]bool{}}

	beside.slowEtcd(t, a)
	a.expiring(t)
	beside.breakTable(t, a)
	beside.loseAuthority(t, a)
	a.clears(t, "FederationEtcdSlow")
	a.clears(t, "FederationClientCertificateExpiring")
	beside.end(t)
	knot := a.restored(t)
	a.refused(t)
	a.checked(t)
	a.balanced(t, balancer)
	a.lost(t, knot)
	a.unready(t)
	a.drilled(t)
	a.fires(t, "FederationDNSServerStale")
	letRead()
	a.clears(t, "FederationDNSServerStale")
	a.clears(t, "FederationMemberRefusesWrites", `cluster="east-a"`)

	for _, alert := range all {
		if why := elsewhere[alert]; !a.cleared[alert] && why == "" || a.cleared[alert] && why != "" {
			t.Errorf("%s: fired %t, cleared %t, and is said not to: %q", alert, a.fired[alert], a.cleared[alert], why)
		}
	}
	t.Logf("%d of %d alerts have fired and cleared", len(a.cleared), len(all))
}

// fires waits until an alert fires that did not, with these labels.
func (a *alerts) fires(t *testing.T, alert string, labels ...string) {
	t.Helper()
	t.Logf("%s %v fires %.1f s later", alert, labels, a.firing(t, alert, true, labels...).Seconds())
	a.fired[alert] = true
}

// clears waits until an alert that has fired fires no more.
func (a *alerts) clears(t *testing.T, alert string, labels ...string) {
	t.Helper()
	if !a.fired[alert] {
		t.Fatalf("%s has not fired", alert)
	}
	t.Logf("%s %v clears %.1f s later", alert, labels, a.firing(t, alert, false, labels...).Seconds())
	a.cleared[alert] = true
}

// silent fails the test if an alert fires.
func (a *alerts) silent(t *testing.T, alert string, labels ...string) {
	t.Helper()
	if n, err := a.count(`ALERTS{` + strings.Join(append(labels, `alertstate="firing"`, `alertname="`+alert+`"`), ",") + `}`); err != nil || n > 0 {
		t.Errorf("%s %v fires: %d series, %v", alert, labels, n, err)
	}
}

// scraped is a scrape_config of an address without TLS.
func scraped(job, address string) string {
	return fmt.Sprintf("- job_name: %s\n  static_configs: [{targets: ['%s']}]\n", job, address)
}

// quickRules writes the rules of alerts.yaml to a file, in less time, and returns that and the names of the alerts.
func quickRules(t *testing.T) (file string, all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.root, "hack/manifests/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string           `json:"name"`
			Rules []map[string]any `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(text, &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, rule := range g.Rules {
			all = append(all, rule["alert"].(string))
			if of, ok := rule["for"].(string); ok {
				long, err := time.ParseDuration(of)
				if err != nil || long < time.Minute {
					t.Fatalf("%v: for: %s: %v", rule["alert"], of, err)
				}
				rule["for"] = fmt.Sprintf("%ds", int(long.Minutes()))
			}
			if slices.Contains([]any{"FederationDrillFailed", "FederationClientCertificateExpiring", "FederationEtcdSlow"}, rule["alert"]) {
				rule["expr"] = regexp.MustCompile(`\[(1h|5m)\]`).ReplaceAllString(rule["expr"].(string), "[1m]")
			}
		}
	}
	if text, err = yaml.Marshal(rules); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, all
}

// restored ends the federation, and starts it, first without standing readiness, and then from what it had before, as from an old backup: copies in the clusters are of objects that it does not know. It goes on
// with a DNS provider, which is returned.
func (a *alerts) restored(t *testing.T) *knot {
	t.Helper()
	provider := startKnot(t, s.env["DNS_ZONE"]+".")
	dir := servertest.Dir(t)
	providers := servertest.Write(t, dir, "providers.yaml", fmt.Sprintf("providers:\n- name: knot\n  rfc2136: {server: %s, key: {name: federation, algorithm: hmac-sha256, secretFile: %s}}\n",
		provider.address, servertest.Write(t, dir, "key", goodKey)))
	t.Cleanup(func() {
		stopFederation(t)
		up(t)
	})
	data, backup := filepath.Join(s.dir, "federation", "etcd"), filepath.Join(t.TempDir(), "etcd")
	stopFederation(t)
	copyAll(t, data, backup)
	a.fires(t, "FederationDown")
	up(t, "--readiness=")
	a.clears(t, "FederationDown")
	const objects = 15
	for i := range objects {
		applyConfigMap(t, fmt.Sprintf("after-backup-%d", i))
	}
	for i := range objects {
		copies(t, fmt.Sprintf("after-backup-%d", i), names...)
	}
	a.fires(t, "FederationReadinessAbsent")
	stopFederation(t)
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	copyAll(t, backup, data)
	up(t, "--dns-providers="+providers)
	eventually(t, time.Minute, func() string {
		if n, err := a.count("federation_readiness_evaluated_timestamp_seconds"); err != nil || n == 0 {
			return fmt.Sprintf("readiness of %d domains: %v", n, err)
		}
		return ""
	})
	a.clears(t, "FederationReadinessAbsent")
	for _, member := range names {
		a.fires(t, "FederationDeletionsPendingApproval", fmt.Sprintf("cluster=%q", member))
	}
	for _, member := range names {
		if out, err := s.kubectl(t, "", "federation", "approve-deletions", member, "--yes"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	a.clears(t, "FederationDeletionsPendingApproval")
	return provider
}

// stopFederation ends the federation's process if it runs, and waits for that.
func stopFederation(t *testing.T) {
	t.Helper()
	pid := s.pid(t, "federation.pid")
	runs := func() bool {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return strings.Contains(string(line), s.dir)
	}
	if runs() {
		s.signal(t, syscall.SIGTERM, "federation.pid")
	}
	eventually(t, 30*time.Second, func() string {
		if runs() {
			return "the federation has not ended"
		}
		return ""
	})
}
