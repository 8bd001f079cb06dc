package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// epoch is when the first export was made.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// port parses "http:80" or "http:80/UDP".
func port(text string) corev1.ServicePort {
	name, rest, _ := strings.Cut(text, ":")
	p := corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP}
	number, protocol, has := strings.Cut(rest, "/")
	if has {
		p.Protocol = corev1.Protocol(protocol)
	}
	if _, err := fmt.Sscan(number, &p.Port); err != nil {
		panic(err)
	}
	return p
}

// exported is an export of shop/web by a cluster, so many seconds after the first.
func exported(cluster string, second int, ports ...string) Export {
	e := Export{
		Cluster: cluster,
		Export:  &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(second) * time.Second))}},
		Service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}},
	}
	for _, p := range ports {
		e.Service.Spec.Ports = append(e.Service.Spec.Ports, port(p))
	}
	return e
}

func conflictOf(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, "Conflict")
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason
}

func portTexts(ports []mcsv1beta1.ServicePort) (texts []string) {
	for _, p := range ports {
		texts = append(texts, fmt.Sprintf("%s:%d/%s", p.Name, p.Port, p.Protocol))
	}
	return texts
}

func TestPortsAreUnited(t *testing.T) {
	for name, c := range map[string]struct {
		oldest, second []string
		want, conflict string
	}{
		"equal":                         {[]string{"http:80"}, []string{"http:80"}, "http:80/TCP", "False NoConflicts"},
		"equal, in another order":       {[]string{"a:1", "b:2"}, []string{"b:2", "a:1"}, "a:1/TCP b:2/TCP", "False NoConflicts"},
		"one more":                      {[]string{"http:80"}, []string{"http:80", "dns:53/UDP"}, "http:80/TCP dns:53/UDP", "True PortConflict"},
		"one name, two numbers":         {[]string{"http:80"}, []string{"http:81"}, "http:80/TCP", "True PortConflict"},
		"one number, two names":         {[]string{"http:80"}, []string{"web:80"}, "http:80/TCP", "True PortConflict"},
		"one number, two protocols":     {[]string{"dns:53"}, []string{"dns-udp:53/UDP"}, "dns:53/TCP dns-udp:53/UDP", "True PortConflict"},
		"without a name beside another": {[]string{":80"}, []string{"http:81"}, ":80/TCP", "True PortConflict"},
	} {
		t.Run(name, func(t *testing.T) {
			in, conditions := Merge([]Export{exported("b", 1, c.second...), exported("a", 0, c.oldest...)})
			if got := strings.Join(portTexts(in.Spec.Ports), " "); got != c.want {
				t.Errorf("ports %s, want %s", got, c.want)
			}
			for _, cluster := range []string{"a", "b"} {
				if got := conflictOf(conditions[cluster]); got != c.conflict {
					t.Errorf("%s: %s, want %s", cluster, got, c.conflict)
				}
			}
		})
	}
}

// The oldest decides each property, and all are told of each conflict.
func TestTheOldestDecides(t *testing.T) {
	for reason, change := range map[mcsv1beta1.ServiceExportConditionReason]func(e *Export){
		mcsv1beta1.ServiceExportReasonTypeConflict:            func(e *Export) { e.Service.Spec.ClusterIP = corev1.ClusterIPNone },
		mcsv1beta1.ServiceExportReasonSessionAffinityConflict: func(e *Export) { e.Service.Spec.SessionAffinity = corev1.ServiceAffinityClientIP },
		mcsv1beta1.ServiceExportReasonSessionAffinityConfigConflict: func(e *Export) {
			e.Service.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(60))}}
		},
		mcsv1beta1.ServiceExportReasonInternalTrafficPolicyConflict: func(e *Export) {
			e.Service.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		},
		mcsv1beta1.ServiceExportReasonTrafficDistributionConflict: func(e *Export) { e.Service.Spec.TrafficDistribution = new("PreferClose") },
		mcsv1beta1.ServiceExportReasonIPFamilyConflict: func(e *Export) {
			e.Service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol}
		},
		mcsv1beta1.ServiceExportReasonLabelsConflict:      func(e *Export) { e.Export.Spec.ExportedLabels = map[string]string{"tier": "gold"} },
		mcsv1beta1.ServiceExportReasonAnnotationsConflict: func(e *Export) { e.Export.Spec.ExportedAnnotations = map[string]string{"note": "x"} },
		mcsv1beta1.ServiceExportReasonPortConflict:        func(e *Export) { e.Service.Spec.Ports[0].AppProtocol = new("kubernetes.io/h2c") },
	} {
		for _, changed := range []int{0, 1} {
			exports := []Export{exported("a", 0, "http:80"), exported("b", 1, "http:80")}
			alone, _ := Merge(exports[:1])
			change(&exports[changed])
			if changed == 0 {
				alone, _ = Merge(exports[:1])
			}
			in, conditions := Merge(exports)
			in.Clusters = alone.Clusters
			if !reflect.DeepEqual(in, alone) {
				t.Errorf("%s, in export %d: %+v, want what the oldest has alone: %+v", reason, changed, in, alone)
			}
			for _, cluster := range []string{"a", "b"} {
				if got := conflictOf(conditions[cluster]); got != "True "+string(reason) {
					t.Errorf("%s, in export %d: %s is told %s", reason, changed, cluster, got)
				}
			}
		}
	}
}

func TestInvalidExports(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *Export)
		reason string
	}{
		"no Service":       {func(e *Export) { e.Service = nil }, "NoService"},
		"ExternalName":     {func(e *Export) { e.Service.Spec.Type = corev1.ServiceTypeExternalName }, "InvalidServiceType"},
		"not allowed":      {func(e *Export) { e.Refused = "the cluster is for others" }, ReasonNotAllowed},
		"no ports":         {func(e *Export) { e.Service.Spec.Ports = nil }, ReasonInvalidService},
		"port 0":           {func(e *Export) { e.Service.Spec.Ports[0].Port = 0 }, ReasonInvalidService},
		"port 65536":       {func(e *Export) { e.Service.Spec.Ports[0].Port = 65536 }, ReasonInvalidService},
		"a protocol":       {func(e *Export) { e.Service.Spec.Ports[0].Protocol = "ICMP" }, ReasonInvalidService},
		"a name of a port": {func(e *Export) { e.Service.Spec.Ports[0].Name = "a b" }, ReasonInvalidService},
		"a name twice":     {func(e *Export) { e.Service.Spec.Ports = append(e.Service.Spec.Ports, port("http:81")) }, ReasonInvalidService},
		"an appProtocol":   {func(e *Export) { e.Service.Spec.Ports[0].AppProtocol = new("a\nb") }, ReasonInvalidService},
		"an affinity":      {func(e *Export) { e.Service.Spec.SessionAffinity = "All" }, ReasonInvalidService},
		"a traffic policy": {func(e *Export) {
			e.Service.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicy("Elsewhere"))
		}, ReasonInvalidService},
		"a distribution": {func(e *Export) { e.Service.Spec.TrafficDistribution = new("a b") }, ReasonInvalidService},
		"a label":        {func(e *Export) { e.Export.Spec.ExportedLabels = map[string]string{"a": "b c"} }, ReasonInvalidExport},
		"a key":          {func(e *Export) { e.Export.Spec.ExportedAnnotations = map[string]string{"a b": ""} }, ReasonInvalidExport},
		"our mark": {func(e *Export) {
			e.Export.Spec.ExportedLabels = map[string]string{"federation.kubernetes.io/managed-by": "x"}
		}, ReasonInvalidExport},
		"another's endpoints": {func(e *Export) {
			e.Export.Spec.ExportedLabels = map[string]string{"multicluster.kubernetes.io/service-name": "x"}
		}, ReasonInvalidExport},
		"very much": {func(e *Export) {
			e.Export.Spec.ExportedAnnotations = map[string]string{"a": strings.Repeat("x", 20<<10)}
		}, ReasonInvalidExport},
		"an affinity that lasts for years": {func(e *Export) {
			e.Service.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(1 << 30))}}
		}, ReasonInvalidService},
		"101 ports": {func(e *Export) {
			e.Service.Spec.Ports = nil
			for i := range int32(101) {
				e.Service.Spec.Ports = append(e.Service.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: i + 1, Protocol: corev1.ProtocolTCP})
			}
		}, ReasonInvalidService},
	} {
		t.Run(name, func(t *testing.T) {
			good, bad := exported("good", 1, "http:80"), exported("bad", 0, "http:80")
			c.change(&bad)
			in, conditions := Merge([]Export{bad, good})
			if valid := meta.FindStatusCondition(conditions["bad"], "Valid"); valid == nil || valid.Status != metav1.ConditionFalse || valid.Reason != c.reason {
				t.Errorf("%+v, want Valid=False, %s", valid, c.reason)
			}
			alone, want := Merge([]Export{good})
			if !reflect.DeepEqual(in, alone) || !reflect.DeepEqual(conditions["good"], want["good"]) {
				t.Errorf("it costs others: %+v, %+v", in, conditions["good"])
			}
			if in, _ := Merge([]Export{bad}); in != nil {
				t.Errorf("it is imported: %+v", in)
			}
		})
	}
}

// randomExports returns exports of up to six clusters that agree on much, in any order.
func randomExports(r *rand.Rand) (exports []Export) {
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	for _, cluster := range []string{"a", "b", "c", "d", "e", "f"}[:r.IntN(7)] {
		e := exported(cluster, r.IntN(4))
		for _, name := range []string{"http", "dns", "admin"}[:1+r.IntN(3)] {
			e.Service.Spec.Ports = append(e.Service.Spec.Ports, port(name+pick(":80", ":53", ":53/UDP", ":8080")))
		}
		if r.IntN(8) == 0 {
			e.Service.Spec.Ports = []corev1.ServicePort{port(pick(":80", ":53"))}
		}
		if r.IntN(4) == 0 {
			e.Service.Spec.ClusterIP = corev1.ClusterIPNone
		}
		e.Service.Spec.SessionAffinity = corev1.ServiceAffinity(pick("None", "None", "ClientIP"))
		if r.IntN(5) == 0 {
			e.Export.Spec.ExportedLabels = map[string]string{"tier": pick("gold", "silver")}
		}
		switch r.IntN(12) {
		case 0:
			e.Service = nil
		case 1:
			e.Service.Spec.Type = corev1.ServiceTypeExternalName
		}
		exports = append(exports, e)
	}
	r.Shuffle(len(exports), func(i, j int) { exports[i], exports[j] = exports[j], exports[i] })
	return exports
}

func kind(e Export) string {
	return map[bool]string{true: "Headless", false: "ClusterSetIP"}[e.Service.Spec.ClusterIP == "None"]
}

func portSet(e Export) string {
	var all []string
	for _, p := range e.Service.Spec.Ports {
		all = append(all, fmt.Sprintf("%s:%d/%s", p.Name, p.Port, p.Protocol))
	}
	sort.Strings(all)
	return fmt.Sprint(all)
}

// reference is what KEP-1645 says, clause by clause, slowly: type, affinity, labels and reasons.
func reference(exports []Export) (typ, affinity, labels, ports, clusters, reasons string) {
	var valid []Export
	for _, e := range exports {
		if e.Service != nil && e.Service.Spec.Type != corev1.ServiceTypeExternalName {
			valid = append(valid, e)
		}
	}
	if len(valid) == 0 {
		return
	}
	sort.Slice(valid, func(i, j int) bool {
		a, b := valid[i], valid[j]
		if !a.Export.CreationTimestamp.Time.Equal(b.Export.CreationTimestamp.Time) {
			return a.Export.CreationTimestamp.Time.Before(b.Export.CreationTimestamp.Time)
		}
		return a.Cluster < b.Cluster
	})
	typ, affinity, labels = kind(valid[0]), string(valid[0].Service.Spec.SessionAffinity), fmt.Sprint(valid[0].Export.Spec.ExportedLabels)
	var names, found []string
	var united []corev1.ServicePort
	for _, e := range valid {
		names = append(names, e.Cluster)
		for reason, differ := range map[string]bool{
			"TypeConflict": kind(e) != typ, "SessionAffinityConflict": string(e.Service.Spec.SessionAffinity) != affinity,
			"LabelsConflict": fmt.Sprint(e.Export.Spec.ExportedLabels) != labels, "PortConflict": portSet(e) != portSet(valid[0]),
		} {
			if differ && !slices.Contains(found, reason) {
				found = append(found, reason)
			}
		}
		for _, p := range e.Service.Spec.Ports {
			free := true
			for _, q := range united {
				free = free && q.Name != p.Name && (q.Port != p.Port || q.Protocol != p.Protocol) && q.Name != "" && p.Name != ""
			}
			if free {
				united = append(united, p)
			}
		}
	}
	sort.Strings(names)
	sort.Strings(found)
	reasons = "True " + strings.Join(found, ",")
	if len(found) == 0 {
		reasons = "False NoConflicts"
	}
	for _, p := range united {
		ports += fmt.Sprintf("%s:%d/%s ", p.Name, p.Port, p.Protocol)
	}
	return typ, affinity, labels, ports, fmt.Sprint(names), reasons
}

func TestMergeIsTheReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 10_000 {
		exports := randomExports(r)
		in, conditions := Merge(exports)
		typ, affinity, labels, ports, clusters, reasons := reference(exports)
		if in == nil {
			if typ != "" {
				t.Fatalf("set %d: nothing is imported, want %s of %s", n, typ, clusters)
			}
			continue
		}
		got := ""
		for _, p := range portTexts(in.Spec.Ports) {
			got += p + " "
		}
		if string(in.Spec.Type) != typ || string(in.Spec.SessionAffinity) != affinity || fmt.Sprint(in.Labels) != labels || got != ports || fmt.Sprint(in.Clusters) != clusters {
			t.Fatalf("set %d: %+v, want %s, affinity %s, labels %s, ports %s, clusters %s", n, in, typ, affinity, labels, ports, clusters)
		}
		for _, cluster := range in.Clusters {
			if c := conflictOf(conditions[cluster]); c != reasons {
				t.Fatalf("set %d: %s is told %s, want %s", n, cluster, c, reasons)
			}
		}
		if len(conditions) != len(exports) {
			t.Fatalf("set %d: conditions for %v, of %d exports", n, slices.Sorted(maps.Keys(conditions)), len(exports))
		}
		r.Shuffle(len(exports), func(i, j int) { exports[i], exports[j] = exports[j], exports[i] })
		if again, also := Merge(exports); !reflect.DeepEqual(again, in) || !reflect.DeepEqual(also, conditions) {
			t.Fatalf("set %d: another order gives %+v, was %+v", n, again, in)
		}
		for _, c := range conditions {
			for _, of := range c {
				if len(of.Message) > 1000 {
					t.Fatalf("set %d: a message of %d bytes", n, len(of.Message))
				}
			}
		}
	}
}
