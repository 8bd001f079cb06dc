package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/validation"
)

// The federation probes only its own names. Acceptance test 29 of drills, with TestFailoverDrill.
func TestProbesAreOfTheZone(t *testing.T) {
	p := New(policies{}, nil, func() *validation.DNSNames { return &validation.DNSNames{Federation: "fed", Zone: "example.com"} })
	for host, good := range map[string]bool{
		"shop.example.com": true, "Shop.Example.COM.": true, "web.shop.fed.svc.a.east.example.com": true,
		"example.org": false, "example.com": false, "notexample.com": false, "metadata.internal": false, "localhost": false,
	} {
		s := &v1beta1.FailoverDrillSpec{Probes: []v1beta1.DrillProbe{{Name: "web", Service: &v1beta1.DrillProbeService{Namespace: "shop", Name: "web"}}, {Name: "host", Host: host}}}
		d := &v1beta1.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: *s}
		a := admission.NewAttributesRecord(d, nil, v1beta1.SchemeGroupVersion.WithKind("FailoverDrill"), "", "d", v1beta1.FailoverDrillsResource, "", admission.Create, &metav1.CreateOptions{}, false, nil)
		err := p.checkProbes(a, s, "spec.")
		if (err == nil) != good || err != nil && !strings.Contains(err.Error(), `spec.probes[1].host: Invalid value: "`+host+`": must be in the federation's zone example.com`) {
			t.Errorf("%s: %v", host, err)
		}
	}
}
