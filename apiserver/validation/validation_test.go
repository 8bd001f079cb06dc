package validation

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

func cluster(name, cidr, address string) *v1beta1.Cluster {
	return &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"},
		Spec:       v1beta1.ClusterSpec{ServerAddressByClientCIDRs: []v1beta1.ServerAddressByClientCIDR{{ClientCIDR: cidr, ServerAddress: address}}},
	}
}

// fields returns the paths of the faults, in order.
func fields(errs field.ErrorList) string {
	paths := make([]string, 0, len(errs))
	for _, e := range errs {
		paths = append(paths, e.Field)
	}
	return strings.Join(paths, " ")
}

func TestServerAddress(t *testing.T) {
	for address, good := range map[string]bool{
		"example.com": true, "example.com:6443": true, "192.0.2.1": true, "192.0.2.1:6443": true, "2001:db8::1": true, "[2001:db8::1]:6443": true,
		"": false, "https://example.com": false, "example.com/path": false, "example.com:": false, "example.com:0": false, "example.com:65536": false,
		"example.com:https": false, ":6443": false, "[2001:db8::1]": false, "a b": false,
	} {
		if errs := ValidateCluster(cluster("east", "0.0.0.0/0", address)); (len(errs) == 0) != good {
			t.Errorf("%q: %v", address, errs)
		}
	}
}

// reached is a Cluster with a connection, at an address unless that is "".
func reached(connection v1beta1.ClusterConnection, address string) *v1beta1.Cluster {
	c := cluster("east", "::/0", address)
	if c.Spec.Connection = connection; address == "" {
		c.Spec.ServerAddressByClientCIDRs = nil
	}
	return c
}

func TestValidateCluster(t *testing.T) {
	twice := cluster("east", "10.0.0.0/8", "a")
	twice.Spec.ServerAddressByClientCIDRs = append(twice.Spec.ServerAddressByClientCIDRs, twice.Spec.ServerAddressByClientCIDRs...)
	nameless := cluster("east", "::/0", "a")
	nameless.Spec.SecretRef = &corev1.LocalObjectReference{}
	secret := reached(v1beta1.ConnectionPull, "")
	secret.Spec.SecretRef = &corev1.LocalObjectReference{Name: "s"}
	for name, c := range map[string]struct {
		cluster *v1beta1.Cluster
		want    string
	}{
		"good":                      {cluster("east-1", "::/0", "a"), ""},
		"name with a dot":           {cluster("east.1", "::/0", "a"), "metadata.name"},
		"name too long":             {cluster(strings.Repeat("a", 64), "::/0", "a"), "metadata.name"},
		"network without a mask":    {cluster("east", "10.0.0.0", "a"), "spec.serverAddressByClientCIDRs[0].clientCIDR"},
		"the same network twice":    {twice, "spec.serverAddressByClientCIDRs[1].clientCIDR"},
		"no address":                {&v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, "spec.serverAddressByClientCIDRs"},
		"secret without a name":     {nameless, "spec.secretRef.name"},
		"push without an address":   {reached("Push", ""), "spec.serverAddressByClientCIDRs"},
		"pull with an address":      {reached("Pull", "a"), "spec.serverAddressByClientCIDRs"},
		"pull with a credential":    {secret, "spec.secretRef"},
		"another connection":        {reached("Poll", "a"), "spec.connection"},
		"pull":                      {reached("Pull", ""), ""},
		"several faults, all named": {cluster("East", "x", "/"), "metadata.name spec.serverAddressByClientCIDRs[0].clientCIDR spec.serverAddressByClientCIDRs[0].serverAddress"},
	} {
		if got := fields(ValidateCluster(c.cluster)); got != c.want {
			t.Errorf("%s: faults at %q, want %q", name, got, c.want)
		}
	}
}

func TestUpdatesAreChecked(t *testing.T) {
	old := cluster("east", "::/0", "a")
	if got := fields(ValidateClusterUpdate(cluster("east", "::/0", ""), old)); got != "spec.serverAddressByClientCIDRs[0].serverAddress" {
		t.Errorf("update: faults at %q", got)
	}
	if got := fields(ValidateClusterUpdate(cluster("west", "::/0", "a"), old)); got != "metadata.name" {
		t.Errorf("another name: faults at %q", got)
	}
	status := cluster("east", "::/0", "a")
	status.Status.Conditions = []v1beta1.ClusterCondition{{Type: "Ready", Status: "True"}, {Type: "Ready", Status: "Perhaps"}, {Status: "False"}}
	want := "status.conditions[1].type status.conditions[1].status status.conditions[2].type"
	if got := fields(ValidateClusterStatusUpdate(status, old)); got != want {
		t.Errorf("status: faults at %q, want %q", got, want)
	}
}

func TestAnnotationsAreCheckedWhenTheyChange(t *testing.T) {
	bad := map[string]string{
		v1beta1.DeploymentPreferencesAnnotation: `{"clusters":{"b":{"weight":-1},"a":{"minReplicas":2,"maxReplicas":1}}}`,
		v1beta1.ClusterSelectorAnnotation:       `[{"key":"zone","operator":"in","values":[]}]`,
		v1beta1.DNSAnnotation:                   `{"clusters":{"east-a":{"priority":-1}}}`,
		"of/somebody-else":                      "{",
	}
	preferences := "metadata.annotations[" + v1beta1.DeploymentPreferencesAnnotation + "]"
	selector := "metadata.annotations[" + v1beta1.ClusterSelectorAnnotation + "][0].values"
	dns := "metadata.annotations[" + v1beta1.DNSAnnotation + "].clusters[east-a].priority"
	want := selector + " " + preferences + ".clusters[a].minReplicas " + preferences + ".clusters[b].weight " + dns
	if got := fields(ValidateAnnotations(bad)); got != want {
		t.Errorf("faults at\n%q, want\n%q", got, want)
	}
	if errs := ValidateChangedAnnotations(bad, bad); len(errs) > 0 {
		t.Errorf("what was stored before is in the way: %v", errs)
	}
	if errs := ValidateAnnotations(map[string]string{v1beta1.ReplicaSetPreferencesAnnotation: `{"rebalance": true, "clusters": {"k8s-1": {"minReplicas": 10, "maxReplicas": 20, "weight": 2}, "*": {"weight": 1}}}`}); len(errs) > 0 {
		t.Errorf("a good one: %v", errs)
	}
}

// An invalid cluster name is a slip: nothing would ever go there.
func TestClustersInAnnotationsHaveNamesThatClustersCanHave(t *testing.T) {
	preferences, dns := "metadata.annotations["+v1beta1.JobPreferencesAnnotation+"]", "metadata.annotations["+v1beta1.DNSAnnotation+"]"
	want := dns + ".clusters[East] " + preferences + ".clusters[east a]"
	if got := fields(ValidateAnnotations(map[string]string{
		v1beta1.JobPreferencesAnnotation: `{"clusters":{"east a":{"weight":1},"*":{"weight":1}}}`,
		v1beta1.DNSAnnotation:            `{"clusters":{"East":{"weight":1},"*":{"weight":1}}}`,
	})); got != want {
		t.Errorf("faults at\n%q, want\n%q", got, want)
	}
}

func TestUnknownAnnotationsAreWarnedOf(t *testing.T) {
	typo := "federation.kubernetes.io/deployment-preference"
	annotations := map[string]string{typo: "{}", "example.com/tier": "gold"}
	for _, ours := range []string{v1beta1.PlacementAnnotation, v1beta1.ServiceIngressesAnnotation, v1beta1.CreatedPodsAnnotation, v1beta1.JobRoundAnnotation} {
		annotations[ours] = ""
	}
	services := schema.ParseGroupResource("services")
	if got := WarnOfAnnotations(services, annotations, nil); len(got) != 1 || !strings.Contains(got[0], "["+typo+"]: counts for nothing") {
		t.Errorf("%q, want one warning of %s", got, typo)
	}
	if again := WarnOfAnnotations(services, annotations, annotations); len(again) > 0 {
		t.Errorf("%q of what was there before", again)
	}
}

// TestAnnotationsOfLoadBalancers have few values, and count for one kind each.
func TestAnnotationsOfLoadBalancers(t *testing.T) {
	for key, c := range map[string]struct{ good, bad, kind, other string }{
		v1beta1.SSLPassthroughAnnotation: {"true", "yes", "ingresses.networking.k8s.io", "services"}, v1beta1.ProxyProtocolAnnotation: {"v2", "v1", "services", "ingresses.networking.k8s.io"},
	} {
		if errs := ValidateAnnotations(map[string]string{key: c.bad}); len(errs) != 1 || errs[0].Field != "metadata.annotations["+key+"]" || !strings.Contains(errs[0].Error(), `"`+c.good+`"`) {
			t.Errorf("%s: %s: %v", key, c.bad, errs)
		}
		annotations := map[string]string{key: c.good}
		if errs := ValidateAnnotations(annotations); len(errs) > 0 {
			t.Errorf("%s: %s: %v", key, c.good, errs)
		}
		if own, other := WarnOfAnnotations(schema.ParseGroupResource(c.kind), annotations, nil), WarnOfAnnotations(schema.ParseGroupResource(c.other), annotations, nil); len(own) != 0 || len(other) != 1 {
			t.Errorf("%s: warnings %q for %s, %q for %s", key, own, c.kind, other, c.other)
		}
	}
}

func TestPreferencesThatGiveNothingAreWarnedOf(t *testing.T) {
	deployments := schema.ParseGroupResource("deployments.apps")
	for value, want := range map[string]int{`{"rebalance":true}`: 1, `{"clusters":{}}`: 1, `{"clusters":{"a":{"weight":1}}}`: 0} {
		if got := WarnOfAnnotations(deployments, map[string]string{v1beta1.DeploymentPreferencesAnnotation: value}, nil); len(got) != want {
			t.Errorf("%s: %q, want %d warnings", value, got, want)
		}
	}
}

func TestPreferencesOfAnotherKindAreWarnedOf(t *testing.T) {
	annotations := map[string]string{v1beta1.ReplicaSetPreferencesAnnotation: `{"clusters":{"*":{}}}`, v1beta1.DeploymentPreferencesAnnotation: `{"clusters":{"*":{}}}`}
	for resource, want := range map[string][]string{
		"deployments.apps":     {"it is that of a ReplicaSet; that of a Deployment is " + v1beta1.DeploymentPreferencesAnnotation},
		"services":             {"it is that of a ReplicaSet; the replicas of a Service are not divided", "it is that of a Deployment; "},
		"crontabs.example.com": nil,
	} {
		got := WarnOfAnnotations(schema.ParseGroupResource(resource), annotations, nil)
		if len(got) != len(want) {
			t.Errorf("%s: %q, want %d warnings", resource, got, len(want))
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("%s: %q, want %q", resource, got[i], want[i])
			}
		}
		if again := WarnOfAnnotations(schema.ParseGroupResource(resource), annotations, annotations); len(again) > 0 {
			t.Errorf("%s: %q of what was there before", resource, again)
		}
	}
}
