package v1beta1

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDrain_ReadsWhatItWrote: the annotation loses nothing, whatever the state before was.
func TestDrain_ReadsWhatItWrote(t *testing.T) {
	weight, none := int32(7), int32(0)
	for _, d := range []Drain{
		{Since: metav1.NewTime(time.Unix(1_700_000_000, 0).UTC())},
		{Since: metav1.NewTime(time.Unix(1_700_000_000, 0).UTC()), DNSWeight: &weight, Cordoned: true, Empty: true, Drill: "uid"},
		{Since: metav1.NewTime(time.Unix(0, 0).UTC()), DNSWeight: &none},
	} {
		got, err := ParseDrain(d.String())
		if err != nil || !got.Since.Equal(&d.Since) || got.Cordoned != d.Cordoned || got.Empty != d.Empty || got.Drill != d.Drill {
			t.Errorf("%s: read as %+v, %v", d.String(), got, err)
		}
		if (got.DNSWeight == nil) != (d.DNSWeight == nil) || d.DNSWeight != nil && *got.DNSWeight != *d.DNSWeight {
			t.Errorf("%s: weight read as %v", d.String(), got.DNSWeight)
		}
	}
	if d, err := ParseDrain(""); d != nil || err != nil {
		t.Errorf("no annotation: %v, %v", d, err)
	}
	for _, bad := range []string{"yes", "[]", `{"dnsWeight":"much"}`} {
		if _, err := ParseDrain(bad); err == nil || !strings.Contains(err.Error(), DrainAnnotation) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestCluster_OutOfService: a drain ends with a cordon, except where the cluster was cordoned before: there the drain says so itself.
func TestCluster_OutOfService(t *testing.T) {
	const cordon, drain = TaintUnschedulable, TaintDrain
	for name, c := range map[string]struct {
		taints     []string
		annotation string
		want       string
	}{
		"serves":                              {nil, "", ""},
		"another taint":                       {[]string{"gpu"}, "", ""},
		"cordoned":                            {[]string{cordon}, "", "SchedulingDisabled"},
		"is being drained":                    {[]string{drain}, (&Drain{}).String(), "Draining"},
		"drained":                             {[]string{cordon, drain}, (&Drain{}).String(), Drained},
		"was cordoned before, and drains":     {[]string{drain, cordon}, (&Drain{Cordoned: true}).String(), "Draining"},
		"was cordoned before, and is empty":   {[]string{drain, cordon}, (&Drain{Cordoned: true, Empty: true}).String(), Drained},
		"by hand, without a state before":     {[]string{drain, cordon}, "", Drained},
		"what is written down is not a state": {[]string{drain, cordon}, "yes", Drained},
	} {
		cluster := &Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{DrainAnnotation: c.annotation}}}
		for _, key := range c.taints {
			cluster.Spec.Taints = append(cluster.Spec.Taints, corev1.Taint{Key: key})
		}
		if got := cluster.OutOfService(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
