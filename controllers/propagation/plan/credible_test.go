package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"federation/apiserver/apis/federation/v1beta1"
)

const balanced = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop","generation":1},"spec":{"type":"LoadBalancer"}}`

func serving(t *testing.T, cluster, status string) Copy {
	t.Helper()
	return Copy{Cluster: cluster, State: Synced, Looked: 1, ReadyEndpoints: true, Object: parse(t, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"status":`+status+`}`)}
}

// What one cluster reports must not block what others report: the API validates a status as a whole.
func TestAddressesAreParsed(t *testing.T) {
	for said, want := range map[string]string{
		`[{"ip":"192.0.2.7"}]`:                           `192.0.2.7`,
		`[{"ip":"x"},{"ip":"192.0.2.8"}]`:                `192.0.2.8`,
		`[{"ip":"fe80::1%eth0"}]`:                        ``,
		`[{"ip":"2001:DB8::0:1","ipMode":"Proxy"}]`:      `2001:db8::1 Proxy`,
		`[{"ip":"192.0.2.9","ipMode":"Nobody"}]`:         `192.0.2.9`,
		`[{"hostname":"lb_1.example.com"}]`:              ``,
		`[{"hostname":"192.0.2.9"}]`:                     ``,
		`[{"hostname":"lb.example.com","ipMode":"VIP"}]`: `lb.example.com`,
		`[{"ip":7},"text",null,{}]`:                      ``,
		`[{"ip":"192.0.2.7","hostname":"-"}]`:            `192.0.2.7`,
	} {
		s := Summarize(kind(t, "Service"), parse(t, balanced), []Copy{serving(t, "east-a", `{"loadBalancer":{"ingress":`+said+`}}`), serving(t, "west-a", `{"loadBalancer":{"ingress":[{"ip":"198.51.100.1"}]}}`)}, "2026-01-03T00:00:00Z")
		var all []string
		list, _, _ := unstructured.NestedSlice(s.Status, "loadBalancer", "ingress")
		for _, item := range list {
			m := item.(map[string]any)
			all = append(all, strings.TrimSpace(fmt.Sprint(textOf(m["ip"]), textOf(m["hostname"]), " ", textOf(m["ipMode"]))))
		}
		if got := strings.Join(slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == "198.51.100.1" }), ","); got != want || !slices.Contains(all, "198.51.100.1") {
			t.Errorf("%s: %q, want %q besides the other cluster's", said, all, want)
		}
		refused := want == "" || strings.Contains(said, `"x"`) || strings.Contains(said, `"-"`)
		if c := conditionIn(s, "Propagated"); refused != (c["reason"] == "AddressRejected") || refused != strings.Contains(fmt.Sprint(c["message"]), "east-a: ") {
			t.Errorf("%s: condition %v", said, c)
		}
	}
}

func textOf(v any) string { text, _ := v.(string); return text }

func conditionIn(s Summary, kind string) map[string]any {
	list, _ := s.Status["conditions"].([]any)
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == kind {
			return c
		}
	}
	return nil
}

func TestAddressesOfAClusterAreBounded(t *testing.T) {
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf(`{"ip":"192.0.%d.%d"}`, 2+i/250, i%250))
	}
	s := Summarize(kind(t, "Service"), parse(t, balanced), []Copy{serving(t, "east-a", `{"loadBalancer":{"ingress":[`+strings.Join(many, ",")+`]}}`)}, "2026-01-03T00:00:00Z")
	list, _, _ := unstructured.NestedSlice(s.Status, "loadBalancer", "ingress")
	items := v1beta1.ParseServiceIngresses(fmt.Sprint(s.Annotations[v1beta1.ServiceIngressesAnnotation])).Items
	if len(list) != 16 || len(items) != 1 || len(items[0].Items) != 16 {
		t.Errorf("%d addresses, in the annotation %v; want 16", len(list), items)
	}
	if c := conditionIn(s, "Propagated"); !strings.Contains(fmt.Sprint(c["message"]), "east-a: 284 of its load balancer addresses are more than the 16 that are used") {
		t.Errorf("%v", c)
	}
}

// A cluster could report the address of another cluster, or of anybody, as its own.
func TestAddressesAreInTheNetworksOfTheCluster(t *testing.T) {
	c := serving(t, "east-a", `{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"},{"ip":"203.0.113.9"},{"hostname":"lb.example.com"},{"ip":"2001:db8::7"}]}}`)
	c.LoadBalancers = []string{"192.0.2.0/24", "2001:db8::/32"}
	s := Summarize(kind(t, "Service"), parse(t, balanced), []Copy{c}, "2026-01-03T00:00:00Z")
	list, _, _ := unstructured.NestedSlice(s.Status, "loadBalancer", "ingress")
	if text := fmt.Sprint(list); text != "[map[ip:192.0.2.7] map[ip:2001:db8::7]]" {
		t.Error(text)
	}
	items := v1beta1.ParseServiceIngresses(fmt.Sprint(s.Annotations[v1beta1.ServiceIngressesAnnotation])).Items
	if len(items) != 1 || len(items[0].Items) != 2 {
		t.Errorf("%v", items)
	}
	want := "east-a: its load balancer address 203.0.113.9 is not used: it is not in the Cluster's spec.loadBalancerCIDRs (192.0.2.0/24, 2001:db8::/32)"
	if c := conditionIn(s, "Propagated"); c["reason"] != "AddressRejected" || c["message"] != want {
		t.Errorf("%v", c)
	}
}

// Addresses that no load balancer can have are in no status, which tools show to people. The annotation has them: DNS,
// which reads it, reports why they are not used.
func TestAddressesThatLeadNowhereAreInNoStatus(t *testing.T) {
	for _, kindOf := range []string{"Service", "Ingress"} {
		c := serving(t, "east-a", `{"loadBalancer":{"ingress":[{"ip":"127.0.0.1"},{"ip":"::ffff:127.0.0.1"},{"ip":"169.254.169.254"},{"ip":"0.0.0.0"},{"ip":"10.1.2.3"},{"hostname":"lb.example.com"}]}}`)
		s := Summarize(kind(t, kindOf), parse(t, balanced), []Copy{c}, "2026-01-03T00:00:00Z")
		list, _, _ := unstructured.NestedSlice(s.Status, "loadBalancer", "ingress")
		if text := fmt.Sprint(list); text != "[map[hostname:lb.example.com] map[ip:10.1.2.3]]" {
			t.Errorf("%s: %s", kindOf, text)
		}
		if text := fmt.Sprint(s.Annotations[v1beta1.ServiceIngressesAnnotation]); !strings.Contains(text, "127.0.0.1") {
			t.Errorf("%s: the annotation has %s", kindOf, text)
		}
	}
}

// What a cluster reports of itself does not make up for what others lack.
func TestNumbersAreBounded(t *testing.T) {
	federated := parse(t, strings.ReplaceAll(web, "ReplicaSet", "Deployment"))
	annotate(v1beta1.PlacementAnnotation, `{"clusters":{"east-a":5,"west-a":15}}`)(federated)
	lie := parse(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":5},"status":{"replicas":9000000000000000000,"readyReplicas":4000000000,"availableReplicas":25,"updatedReplicas":-3,"unavailableReplicas":-1,"observedGeneration":-1}}`)
	honest := parse(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":15},"status":{"replicas":15,"readyReplicas":2,"availableReplicas":2,"updatedReplicas":15}}`)
	s := Summarize(kind(t, "Deployment"), federated, []Copy{{Cluster: "east-a", State: Synced, Object: lie}, {Cluster: "west-a", State: Synced, Object: honest}}, "2026-01-03T00:00:00Z")
	if s.Status["readyReplicas"] != int64(7) || s.Status["availableReplicas"] != int64(7) || s.Status["updatedReplicas"] != int64(15) || s.Status["replicas"].(int64) > math.MaxInt32 {
		t.Errorf("%v", s.Status)
	}
	if c := conditionIn(s, "Available"); c["status"] != "False" {
		t.Errorf("%v", c)
	}
}

func TestTextsAreBounded(t *testing.T) {
	federated := parse(t, strings.ReplaceAll(web, "ReplicaSet", "Deployment"))
	said := parse(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"status":{"conditions":[{"type":"Progressing","status":"False","message":"\u001b[2J`+strings.Repeat("x", 3<<20)+`"}]}}`)
	s := Summarize(kind(t, "Deployment"), federated, []Copy{{Cluster: "east-a", State: Rejected, Message: "\x1b[31m" + strings.Repeat("y", 3<<20), Object: said}}, "2026-01-03T00:00:00Z")
	if text := JSON(s.Patch()); len(text) > 4096 || strings.Contains(string(text), "\\u001b") {
		t.Errorf("%d bytes", len(text))
	}
}

// FuzzSummarize checks that the API accepts the status, whatever two clusters report.
func FuzzSummarize(f *testing.F) {
	for i := range Kinds {
		f.Add(uint(i), []byte(`{"replicas":3,"readyReplicas":7,"availableReplicas":-1,"active":1e3,"succeeded":9000000000,"startTime":"now","conditions":[{"type":"Complete","status":"True"}]}`),
			[]byte(`{"loadBalancer":{"ingress":[{"ip":"x","hostname":"_","ipMode":3},{"ip":"192.0.2.1"}]},"lastScheduleTime":"2026-01-03T00:00:00+01:00","conditions":[{"type":"Failed","status":"True","message":"\u001b"}],"currentRevision":"\u202e"}`), "\x1b[2J")
	}
	f.Fuzz(func(t *testing.T, row uint, a, b []byte, message string) {
		k := &Kinds[row%uint(len(Kinds))]
		if k.Status == nil {
			return
		}
		federated := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": k.Kind, "metadata": map[string]any{"name": "web", "generation": int64(1), "annotations": map[string]any{
			v1beta1.PlacementAnnotation: `{"clusters":{"east-a":2,"west-a":1}}`}}, "spec": map[string]any{"type": "LoadBalancer", "replicas": int64(3), "parallelism": int64(3), "completions": int64(9)}}}
		var copies []Copy
		for i, text := range [][]byte{a, b} {
			var status map[string]any
			u := &unstructured.Unstructured{}
			if json.Unmarshal(text, &status) != nil || u.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"X","metadata":{"name":"web"},"status":`+string(text)+`}`)) != nil {
				return
			}
			copies = append(copies, Copy{Cluster: []string{"east-a", "west-a"}[i], State: Rejected, Message: message, Object: u, ReadyEndpoints: true, Looked: 1, Unmade: 1})
		}
		s := Summarize(k, federated, copies, "2026-01-03T00:00:00Z")
		text, err := json.Marshal(s.Status)
		if err != nil || len(text) > 16<<10 {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		plausible(t, s.Status)
		if err := json.Unmarshal(text, typedStatus(k.Kind)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		plausible(t, map[string]any{"annotations": s.Annotations})
	})
}

func typedStatus(kind string) any {
	switch kind {
	case "Service":
		return &corev1.ServiceStatus{}
	case "PodDisruptionBudget":
		return &policyv1.PodDisruptionBudgetStatus{}
	case "ReplicaSet":
		return &appsv1.ReplicaSetStatus{}
	case "Deployment":
		return &appsv1.DeploymentStatus{}
	case "StatefulSet":
		return &appsv1.StatefulSetStatus{}
	case "DaemonSet":
		return &appsv1.DaemonSetStatus{}
	case "Job":
		return &batchv1.JobStatus{}
	case "CronJob":
		return &batchv1.CronJobStatus{}
	case "HorizontalPodAutoscaler":
		return &autoscalingv2.HorizontalPodAutoscalerStatus{}
	}
	return &networkingv1.IngressStatus{}
}

// plausible checks what Kubernetes' validation requires of all these statuses.
func plausible(t *testing.T, value any) {
	t.Helper()
	switch v := value.(type) {
	case int64:
		if v < 0 {
			t.Errorf("number %d", v)
		}
	case string:
		if strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("text %q", v)
		}
	case []any:
		for _, item := range v {
			plausible(t, item)
		}
	case map[string]any:
		for few, many := range map[string]string{"readyReplicas": "replicas", "availableReplicas": "readyReplicas", "updatedReplicas": "replicas", "fullyLabeledReplicas": "replicas", "ready": "active"} {
			a, _ := v[few].(int64)
			if b, ok := v[many].(int64); ok && a > b {
				t.Errorf("%d %s, %d %s", a, few, b, many)
			}
		}
		if ip, ok := v["ip"].(string); ok {
			if _, err := netip.ParseAddr(ip); err != nil {
				t.Error(err)
			}
		}
		if host, ok := v["hostname"].(string); ok && len(validation.IsDNS1123Subdomain(host)) > 0 {
			t.Errorf("host %q", host)
		}
		for _, item := range v {
			plausible(t, item)
		}
	}
}
