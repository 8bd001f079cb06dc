package validation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// faultsWith returns what is wrong with a good object of a kind whose spec has, besides, what is in a text of JSON.
func faultsWith(t *testing.T, kind, spec string) field.ErrorList {
	t.Helper()
	read := func(into any) {
		if err := json.Unmarshal([]byte(spec), into); err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
	}
	switch kind {
	case "Cluster":
		object := cluster("east", "::/0", "a")
		read(&object.Spec)
		return ValidateCluster(object)
	case "PlacementPolicy":
		object := policy(t, goodSelector)
		read(&object.Spec)
		return ValidatePlacementPolicy(object)
	case "FailoverDrill":
		object := drillOf(func(d *v1beta1.FailoverDrill) { d.Spec.Method = v1beta1.DrillIsolation })
		read(&object.Spec)
		return ValidateFailoverDrill(object)
	case "DNSNameGrant":
		object := &v1beta1.DNSNameGrant{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1beta1.DNSNameGrantSpec{Suffix: "example.com"}}
		read(&object.Spec)
		return ValidateDNSNameGrant(object)
	}
	object := &v1beta1.FailoverDrillSchedule{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1beta1.FailoverDrillScheduleSpec{Schedule: "@daily"}}
	object.Spec.Template.Spec = drillOf(func(*v1beta1.FailoverDrill) {}).Spec
	read(&object.Spec)
	return ValidateFailoverDrillSchedule(object)
}

// Each number may be from one to another, as the reference says: both are allowed, the numbers beside them are not.
func TestNumbersHaveLimits(t *testing.T) {
	const probeOf = `{"probes":[{"name":"a","host":"a.example.com",%s}]}`
	for _, c := range []struct {
		kind, spec, field string
		least, most       int64
	}{
		{"Cluster", `{"dnsWeight":%d}`, "spec.dnsWeight", 0, 1000},
		{"Cluster", `{"drain":{"ttlSeconds":%d}}`, "spec.drain.ttlSeconds", 0, 604800},
		{"PlacementPolicy", `{"failover":{"gracePeriodSeconds":%d}}`, "spec.failover.gracePeriodSeconds", 0, 86400},
		{"PlacementPolicy", `{"dns":{"ttlSeconds":%d}}`, "spec.dns.ttlSeconds", 1, 86400},
		{"PlacementPolicy", `{"dns":{"clusters":{"a":{"weight":%d}}}}`, "spec.dns.clusters[a].weight", 0, 1000},
		{"PlacementPolicy", `{"dns":{"clusters":{"a":{"priority":%d}}}}`, "spec.dns.clusters[a].priority", 0, 1000},
		{"PlacementPolicy", `{"dns":{"healthCheck":{"type":"TCP","port":%d}}}`, "spec.dns.healthCheck.port", 1, 65535},
		{"PlacementPolicy", `{"dns":{"healthCheck":{"type":"HTTP","periodSeconds":%d}}}`, "spec.dns.healthCheck.periodSeconds", 0, 3600},
		{"PlacementPolicy", `{"dns":{"healthCheck":{"type":"HTTP","periodSeconds":99,"timeoutSeconds":%d}}}`, "spec.dns.healthCheck.timeoutSeconds", 0, 60},
		{"PlacementPolicy", `{"dns":{"healthCheck":{"type":"HTTP","periodSeconds":7,"timeoutSeconds":%d}}}`, "spec.dns.healthCheck.timeoutSeconds", 0, 7},
		{"PlacementPolicy", `{"dns":{"healthCheck":{"type":"HTTP","failureThreshold":%d}}}`, "spec.dns.healthCheck.failureThreshold", 0, 10},
		{"PlacementPolicy", `{"dns":{"healthCheck":{"type":"HTTP","successThreshold":%d}}}`, "spec.dns.healthCheck.successThreshold", 0, 10},
		{"PlacementPolicy", `{"replicaPreferences":{"clusters":{"a":{"weight":%d}}}}`, "spec.replicaPreferences.clusters[a].weight", 0, 1<<31 - 1},
		{"PlacementPolicy", `{"replicaPreferences":{"clusters":{"a":{"minReplicas":%d}}}}`, "spec.replicaPreferences.clusters[a].minReplicas", 0, 1<<31 - 1},
		{"PlacementPolicy", `{"replicaPreferences":{"clusters":{"a":{"maxReplicas":%d}}}}`, "spec.replicaPreferences.clusters[a].maxReplicas", 0, 1<<31 - 1},
		{"PlacementPolicy", `{"replicaPreferences":{"clusters":{"a":{"maxReplicas":5,"minReplicas":%d}}}}`,
			"spec.replicaPreferences.clusters[a].minReplicas", 0, 5},
		{"FailoverDrill", `{"baselineSeconds":%d}`, "spec.baselineSeconds", 5, 3600},
		{"FailoverDrill", `{"holdSeconds":%d}`, "spec.holdSeconds", 10, 14400},
		{"FailoverDrill", `{"recoverySeconds":%d}`, "spec.recoverySeconds", 60, 14400},
		{"FailoverDrill", `{"startingDeadlineSeconds":%d}`, "spec.startingDeadlineSeconds", 0, 86400},
		{"FailoverDrill", `{"objectives":{"outOfDNSSeconds":%d}}`, "spec.objectives.outOfDNSSeconds", 1, 14400},
		{"FailoverDrill", `{"objectives":{"readyElsewhereSeconds":%d}}`, "spec.objectives.readyElsewhereSeconds", 1, 14400},
		{"FailoverDrill", `{"objectives":{"detectedSeconds":%d}}`, "spec.objectives.detectedSeconds", 1, 14400},
		{"FailoverDrill", `{"objectives":{"minReadyPercent":%d}}`, "spec.objectives.minReadyPercent", 0, 100},
		{"FailoverDrill", `{"probes":[{"name":"a","host":"a","type":"HTTP"}],"objectives":{"maxFailedPerMille":%d}}`, "spec.objectives.maxFailedPerMille", 0, 1000},
		{"FailoverDrill", `{"guardrails":{"maxFailedPerMille":%d}}`, "spec.guardrails.maxFailedPerMille", 0, 1000},
		{"FailoverDrill", `{"guardrails":{"windowSeconds":%d}}`, "spec.guardrails.windowSeconds", 5, 600},
		{"FailoverDrill", `{"guardrails":{"minReadyPercent":%d}}`, "spec.guardrails.minReadyPercent", 0, 100},
		{"FailoverDrill", fmt.Sprintf(probeOf, `"type":"HTTP","port":%d`), "spec.probes[0].port", 0, 65535},
		{"FailoverDrill", fmt.Sprintf(probeOf, `"type":"TCP","port":%d`), "spec.probes[0].port", 1, 65535},
		{"FailoverDrill", fmt.Sprintf(probeOf, `"type":"DNS","port":%d`), "spec.probes[0].port", 0, 0},
		{"FailoverDrill", fmt.Sprintf(probeOf, `"type":"HTTP","periodSeconds":%d`), "spec.probes[0].periodSeconds", 0, 60},
		{"FailoverDrill", `{"baselineSeconds":20,` + fmt.Sprintf(probeOf, `"type":"HTTP","periodSeconds":%d`)[1:], "spec.probes[0].periodSeconds", 0, 20},
		{"FailoverDrill", fmt.Sprintf(probeOf, `"type":"HTTP","timeoutSeconds":%d`), "spec.probes[0].timeoutSeconds", 0, 5},
		{"FailoverDrillSchedule", `{"startingDeadlineSeconds":%d}`, "spec.startingDeadlineSeconds", 10, 86400},
		{"FailoverDrillSchedule", `{"successfulHistoryLimit":%d}`, "spec.successfulHistoryLimit", 0, 100},
		{"FailoverDrillSchedule", `{"failedHistoryLimit":%d}`, "spec.failedHistoryLimit", 0, 100},
		{"FailoverDrillSchedule", `{"template":{"spec":{"holdSeconds":%d}}}`, "spec.template.spec.holdSeconds", 10, 14400},
	} {
		for n, good := range map[int64]bool{c.least: true, c.most: true, c.least - 1: false, c.most + 1: false} {
			if errs := faultsWith(t, c.kind, fmt.Sprintf(c.spec, n)); slices.Contains(strings.Fields(fields(errs)), c.field) == good {
				t.Errorf("%s: %s: %d is allowed: %t, want %t: %v", c.kind, c.spec, n, !good, good, errs)
			}
		}
	}
}

// Each list has a greatest length, at which nothing is wrong with it; of one more the error says how many there may be.
func TestListsHaveLimits(t *testing.T) {
	for _, c := range []struct {
		kind, before, item, after, field string
		most                             int
	}{
		{"Cluster", `{"allowedNamespaces":[`, `"n-#"`, `]}`, "spec.allowedNamespaces", 1000},
		{"Cluster", `{"topology":{"zones":[`, `"z-#"`, `]}}`, "spec.topology.zones", 16},
		{"Cluster", `{"loadBalancerCIDRs":[`, `"2001:db8::#/128"`, `]}`, "spec.loadBalancerCIDRs", 64},
		{"Cluster", `{"podCIDRs":[`, `"2001:db8::#/128"`, `]}`, "spec.podCIDRs", 64},
		{"PlacementPolicy", `{"resourceSelectors":[`, `{"apiVersion":"apps/v1","kind":"Deployment","names":["n-#"]}`, `]}`, "spec.resourceSelectors", 100},
		{"PlacementPolicy", `{"overrides":[`, `{"jsonPatch":[{"op":"remove","path":"/spec/a-#"}]}`, `]}`, "spec.overrides", 100},
		{"PlacementPolicy", `{"overrides":[{"jsonPatch":[`, `{"op":"remove","path":"/spec/a-#"}`, `]}]}`, "spec.overrides[0].jsonPatch", 100},
		{"PlacementPolicy", `{"dns":{"hosts":[`, `"h-#.example.com"`, `]}}`, "spec.dns.hosts", 100},
		{"FailoverDrill", `{"scope":{"clusters":[`, `"c-#"`, `],"zones":[]}}`, "spec.scope", 1000},
		{"FailoverDrill", `{"scope":{"clusters":["a"],"zones":["b"],"regions":[`, `"r-#"`, `]}}`, "spec.scope", 998},
		{"FailoverDrill", `{"probes":[`, `{"name":"p-#","host":"a.example.com","type":"DNS"}`, `]}`, "spec.probes", 50},
		{"FailoverDrill", `{"windows":{"blockedDates":[`, `"#-01-01"`, `]}}`, "spec.windows.blockedDates", 400},
		{"FailoverDrillSchedule", `{"allowedWindows":[`, `"MON-09:00-12:00"`, `]}`, "spec.allowedWindows", 100},
		{"FailoverDrillSchedule", `{"blockedWindows":[`, `"MON-09:00-12:00"`, `]}`, "spec.blockedWindows", 100},
		{"FailoverDrillSchedule", `{"blockedDates":[`, `"#-12-31"`, `]}`, "spec.blockedDates", 400},
		{"DNSNameGrant", `{"suffix":"example.com","namespaces":[`, `"n-#"`, `]}`, "spec.namespaces", 1000},
	} {
		of := func(n int) field.ErrorList {
			items := make([]string, n)
			for i := range items {
				items[i] = strings.ReplaceAll(c.item, "#", strconv.Itoa(1000+i))
			}
			return faultsWith(t, c.kind, c.before+strings.Join(items, ",")+c.after)
		}
		if errs := of(c.most); len(errs) > 0 {
			t.Errorf("%s: %d in %s: %v", c.kind, c.most, c.field, errs.ToAggregate())
		}
		extra := c.most + 1
		if errs := of(extra); len(errs) == 0 || errs[0].Type != field.ErrorTypeTooMany || errs[0].Field != c.field {
			t.Errorf("%s: %d in %s: %v, want that it is too many", c.kind, extra, c.field, errs)
		}
	}
}

// Each text may be as long as it may be stored, and no longer.
func TestTextsHaveLimits(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		kind, spec, field string
		most              int
	}{
		{"FailoverDrill", `{"reason":"%s"}`, "spec.reason", 1024},
		{"FailoverDrill", `{"probes":[{"name":"a","host":"a","type":"HTTP","path":"/%s"}]}`, "spec.probes[0].path", 255},
		{"FailoverDrill", `{"probes":[{"name":"%s","host":"a","type":"DNS"}]}`, "spec.probes[0].name", 63},
		{"FailoverDrill", `{"probes":[{"name":"a","service":{"namespace":"%s","name":"a"},"type":"DNS"}]}`, "spec.probes[0].service.namespace", 63},
		{"FailoverDrillSchedule", `{"schedule":"0 0 * * 1%s"}`, "spec.schedule", 0},
		{"PlacementPolicy", `{"dns":{"healthCheck":{"type":"HTTP","path":"/%s"}}}`, "spec.dns.healthCheck.path", 255},
		{"PlacementPolicy", `{"resourceSelectors":[{"apiVersion":"v1","kind":"Secret","names":["%s"]}]}`, "spec.resourceSelectors[0].names[0]", 253},
		{"PlacementPolicy", `{"resourceSelectors":[{"apiVersion":"example.com/v1","kind":"X%s"}]}`, "spec.resourceSelectors[0].kind", 62},
		{"Cluster", `{"secretRef":{"name":"%s"}}`, "spec.secretRef.name", 253},
		{"Cluster", `{"network":"%s"}`, "spec.network", 63},
		{"Cluster", `{"topology":{"region":"%s"}}`, "spec.topology.region", 63},
		{"Cluster", `{"allowedNamespaces":["%s"]}`, "spec.allowedNamespaces[0]", 63},
	} {
		if errs := faultsWith(t, c.kind, fmt.Sprintf(c.spec, x(c.most))); len(errs) > 0 {
			t.Errorf("%s: %d bytes in %s: %v", c.kind, c.most, c.field, errs.ToAggregate())
		}
		if got := fields(faultsWith(t, c.kind, fmt.Sprintf(c.spec, x(c.most+1)))); got != c.field {
			t.Errorf("%s: %d bytes: faults at %q, want %s", c.kind, c.most+1, got, c.field)
		}
	}
	for n, want := range map[int]string{1024: "", 1025: "status.abort.reason"} {
		if got := fields(ValidateDrillDecision(&v1beta1.DrillDecision{Reason: x(n)}, field.NewPath("status", "abort"))); got != want {
			t.Errorf("a reason of %d bytes: faults at %q, want %q", n, got, want)
		}
	}
	if errs := ValidateDrillDecision(nil, nil); len(errs) > 0 {
		t.Errorf("no decision: %v", errs)
	}
}

// Of a word of which there are a few, each is allowed as it is written, and in no other letters; the error lists all of them.
func TestWordsAreOfAFew(t *testing.T) {
	const taint, tolerance = `{"taints":[{"key":"a","effect":"%s"}]}`, `{"tolerations":[{"key":"a","operator":"%s"}]}`
	for _, c := range []struct{ kind, spec, field, words string }{
		{"Cluster", `{"serverAddressByClientCIDRs":[],"connection":"%s"}`, "spec.connection", "Pull"},
		{"Cluster", `{"connection":"%s"}`, "spec.connection", "Push"},
		{"Cluster", taint, "spec.taints[0].effect", "NoExecute NoSchedule"},
		{"PlacementPolicy", tolerance, "spec.tolerations[0].operator", "Equal Exists"},
		{"PlacementPolicy", `{"tolerations":[{"key":"a","effect":"%s"}]}`, "spec.tolerations[0].effect", "NoExecute NoSchedule"},
		{"PlacementPolicy", `{"spreadConstraints":[{"spreadBy":"%s","minGroups":1}]}`, "spec.spreadConstraints[0].spreadBy", "Cluster Region Zone"},
		{"PlacementPolicy", `{"workloadAffinity":"%s"}`, "spec.workloadAffinity", "None Preferred Required"},
		{"PlacementPolicy", `{"failover":{"failback":"%s"}}`, "spec.failover.failback", "Immediate Never Staged"},
		{"PlacementPolicy", `{"rollout":{"strategy":"%s"}}`, "spec.rollout.strategy", "AllAtOnce OneClusterAtATime"},
		{"PlacementPolicy", `{"dns":{"strategy":"%s"}}`, "spec.dns.strategy", "All Failover Nearest Weighted"},
		{"FailoverDrill", `{"method":"%s"}`, "spec.method", "Blackhole Evacuate Isolate Shift"},
		{"FailoverDrill", `{"isolate":{"as":"%s"}}`, "spec.isolate.as", "Refused Silent"},
		{"FailoverDrill", `{"allow":["%s"]}`, "spec.allow[0]", "DoubleRunning NotHeld Quiet Rested"},
		{"FailoverDrill", `{"approval":"%s"}`, "spec.approval", "NotRequired Required"},
		{"FailoverDrill", `{"probes":[{"name":"a","host":"a","port":0,"type":"%s"}]}`, "spec.probes[0].type", "DNS HTTP HTTPS"},
		{"FailoverDrill", `{"probes":[{"name":"a","host":"a","port":1,"type":"%s"}]}`, "spec.probes[0].type", "HTTP HTTPS TCP"},
		{"FailoverDrill", `{"probes":[{"name":"a","host":"a","type":"DNS","mode":"%s"}]}`, "spec.probes[0].mode", "Caching Fresh"},
		{"FailoverDrillSchedule", `{"template":{"spec":{"scope":{"zones":["*"]}}},"rotate":"%s"}`, "spec.rotate", "Zones"},
	} {
		for word := range strings.FieldsSeq(c.words) {
			if errs := faultsWith(t, c.kind, fmt.Sprintf(c.spec, word)); len(errs) > 0 {
				t.Errorf("%s: %s %s: %v", c.kind, c.field, word, errs.ToAggregate())
			}
			for _, wrong := range []string{strings.ToLower(word), word + "s ", " " + word} {
				errs := faultsWith(t, c.kind, fmt.Sprintf(c.spec, wrong))
				i := slices.IndexFunc(errs, func(e *field.Error) bool { return e.Field == c.field })
				if i < 0 || errs[i].Type != field.ErrorTypeNotSupported || !strings.Contains(errs[i].Detail, `"`+word+`"`) {
					t.Errorf("%s: %s %q: %v, want that there is %s", c.kind, c.field, wrong, errs, word)
				}
			}
		}
	}
}
