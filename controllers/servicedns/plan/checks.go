package plan

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// Target is a load balancer with its health check.
type Target struct {
	// Namespace is that of the objects with the check.
	Namespace string
	// Address is an IP address, or the canonical name of a host.
	Address string
	// Check has its defaults filled in.
	Check v1beta1.DNSHealthCheck
}

// String describes the check: "HTTP 192.0.2.1:80/healthz".
func (t Target) String() string {
	c := t.Check
	return fmt.Sprintf("%s %s%s", c.Type, net.JoinHostPort(strings.TrimSuffix(t.Address, "."), fmt.Sprint(c.Port)), c.Path)
}

// Key identifies a target.
func (t Target) Key() string {
	c := t.Check
	key := t.String()
	if t.Namespace != "" {
		key += " of " + t.Namespace
	}
	if c.Host != "" {
		key += " host " + c.Host
	}
	if c.InsecureSkipVerify {
		key += " unverified"
	}
	return fmt.Sprintf("%s every %ds timeout %ds rows %d/%d", key, c.PeriodSeconds, c.TimeoutSeconds, c.FailureThreshold, c.SuccessThreshold)
}

// Failure is a failing target.
type Failure struct {
	// Target is its Key.
	Target string `json:"target"`
	// Since is when it began to fail.
	Since time.Time `json:"since"`
	// Why describes the first error.
	Why string `json:"why"`
}

// maxFailures bounds the text of failures in bytes: a ConfigMap holds a megabyte.
const maxFailures = 900_000

// FormatFailures returns the value of v1beta1.DNSHealthChecksFailing: sorted, and deterministic. Failures that do not
// fit are left out and count as healthy.
func FormatFailures(all []Failure) string {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Failure) int { return strings.Compare(a.Target, b.Target) })
	lines := make([]string, 0, len(all))
	size := 0
	for _, f := range all {
		f.Since = f.Since.UTC().Truncate(time.Second)
		line, err := json.Marshal(f)
		if size += len(line) + 2; err != nil || size > maxFailures { // the year 10000 has no JSON form
			break
		}
		lines = append(lines, string(line))
	}
	return "[" + strings.Join(lines, ",\n") + "]"
}

// ParseFailures parses that value. An empty value has no failures.
func ParseFailures(value string) (map[string]Failure, error) {
	var all []Failure
	if value != "" {
		if err := json.Unmarshal([]byte(value), &all); err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %s: %w", v1beta1.FederationNamespace, v1beta1.DNSHealthChecksConfigMap, v1beta1.DNSHealthChecksFailing, err)
		}
	}
	failures := make(map[string]Failure, len(all))
	for _, f := range all {
		failures[f.Target] = f
	}
	return failures, nil
}

// applyHealthCheck ranks serving clusters lower if their load balancers fail the check. If more than half of the serving clusters
// fail, the federation may be the one that cannot reach them: then all keep their rank.
func (p *planner) applyHealthCheck(parts []*part) {
	if p.settings().HealthCheck == nil {
		return
	}
	var fails []*part
	serve := 0
	for _, t := range parts {
		why := p.addTargets(t)
		if t.rank > drained || !t.Ready {
			continue
		}
		if serve++; why != "" {
			t.why = why
			fails = append(fails, t)
		}
	}
	for _, t := range fails {
		code := ""
		if 2*len(fails) > serve {
			code = FailStatic
			t.why += fmt.Sprintf("; so do %d of %d clusters that say that they serve: it may be the federation that cannot reach them, and its addresses stay", len(fails), serve)
		} else {
			t.rank = failing
			t.why += ": its addresses are out"
		}
		p.addCodedReason(code, t.Name, "%s", t.why)
	}
}

// addTargets adds a cluster's load balancers to the targets, and returns why it fails: all of them fail.
func (p *planner) addTargets(t *part) (why string) {
	answers := false
	for _, address := range slices.Concat(addressTexts(t.addresses), t.hosts) {
		target := Target{Namespace: p.object.Namespace, Address: address, Check: p.settings().HealthCheck.WithDefaults()}
		p.plan.Targets = append(p.plan.Targets, target)
		f, fails := p.in.Failing[target.Key()]
		if !fails {
			answers = true
		} else if why == "" {
			why = fmt.Sprintf("it fails the check %s from the federation since %s (%s)", target, f.Since.UTC().Format(time.RFC3339), f.Why)
		}
	}
	if answers {
		return ""
	}
	return why
}
