package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/networking"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/validation"
)

func TestNamesThatDNSCannotHaveAreRefused(t *testing.T) {
	long := strings.Repeat("n", 63)
	names := &validation.DNSNames{Federation: "fed", Zone: strings.Repeat("z.", 50) + "example.com", Places: []string{"a.east"}}
	service := func(name string, kind core.ServiceType) *core.Service {
		return &core.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: long}, Spec: core.ServiceSpec{Type: kind}}
	}
	ingress := func(hosts ...string) *networking.Ingress {
		i := &networking.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "front", Namespace: long}}
		for _, host := range hosts {
			i.Spec.Rules = append(i.Spec.Rules, networking.IngressRule{Host: host})
		}
		return i
	}
	reserved := &validation.DNSNames{Federation: "fed", Zone: "example.com", NoApex: true}
	shared := &validation.DNSNames{Federation: "fed", Zone: "example.com"}
	granted := func(namespaces ...string) *validation.DNSNames {
		return &validation.DNSNames{Federation: "fed", Zone: "example.com", Grants: []*v1beta1.DNSNameGrant{{Spec: v1beta1.DNSNameGrantSpec{Suffix: "login.example.com", Namespaces: namespaces}}}}
	}
	wants := func(hosts string) *core.Service {
		s := service("web", core.ServiceTypeLoadBalancer)
		s.Annotations = map[string]string{v1beta1.DNSAnnotation: `{"hosts":[` + hosts + `]}`}
		return s
	}
	says := func(hosts ...string) *v1beta1.PlacementPolicy {
		return &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "front", Namespace: long}, Spec: v1beta1.PlacementPolicySpec{DNS: &v1beta1.DNSSettings{Hosts: hosts}}}
	}
	bad := long + "n." + names.Zone
	for name, c := range map[string]struct {
		object, old runtime.Object
		names       *validation.DNSNames
		want        string
	}{
		"a short one":                            {service("web", core.ServiceTypeLoadBalancer), nil, names, ""},
		"too long":                               {service(long, core.ServiceTypeLoadBalancer), nil, names, "metadata.name: Invalid value"},
		"too long, without a name in DNS":        {service(long, core.ServiceTypeClusterIP), nil, names, ""},
		"it becomes a load balancer":             {service(long, core.ServiceTypeLoadBalancer), service(long, core.ServiceTypeClusterIP), names, "for the clusters in a.east"},
		"it was one":                             {service(long, core.ServiceTypeLoadBalancer), service(long, core.ServiceTypeLoadBalancer), names, ""},
		"too long, and the zone is not known":    {service(long, core.ServiceTypeLoadBalancer), nil, nil, ""},
		"a host":                                 {ingress("", bad), nil, names, "spec.rules[1].host: Invalid value"},
		"a host that was there":                  {ingress("", bad, "shop.example.com"), ingress(bad), names, ""},
		"the zone itself":                        {ingress("shop.example.com", "Example.com"), nil, reserved, "spec.rules[1].host: Invalid value: \"Example.com\": must be below the zone example.com"},
		"the zone itself, where one can have it": {ingress("example.com"), nil, shared, ""},
		"the zone's name server":                 {ingress("ns.example.com"), nil, shared, "must not be ns.example.com, the name of the zone's name server"},
		"granted to another":                     {ingress("shop.example.com", "www.login.example.com"), nil, granted("shop"), "spec.rules[1].host: Invalid value: \"www.login.example.com\": must not be at or below login.example.com: a DNSNameGrant gives"},
		"granted to another, of a Service":       {wants(`"login.example.com"`), nil, granted("shop"), "metadata.annotations[federation.kubernetes.io/dns].hosts[0]: Invalid value"},
		"granted to another, and there before":   {ingress("login.example.com"), ingress("login.example.com"), granted("shop"), ""},
		"granted":                                {ingress("login.example.com"), nil, granted("shop", long), ""},
		"beside what is granted":                 {ingress("xlogin.example.com"), nil, granted("shop"), ""},
		"the zone itself was there":              {ingress("example.com"), ingress("example.com"), reserved, ""},
		"the zone itself, of a Service":          {wants(`"shop.example.com","example.com"`), nil, reserved, "metadata.annotations[federation.kubernetes.io/dns].hosts[1]: Invalid value"},
		"which had it":                           {wants(`"shop.example.com","example.com"`), wants(`"example.com"`), reserved, ""},
		"of a policy":                            {says("shop.example.com"), nil, reserved, ""},
		"of a policy, outside the zone":          {says("shop.example.com", "shop.example.org"), nil, reserved, "spec.dns.hosts[1]: Invalid value: \"shop.example.org\": must be a name in the zone example.com, as www.example.com"},
		"of a policy, outside, and there before": {says("shop.example.org"), says("shop.example.org"), reserved, ""},
		"of a policy, a Service's own name":      {says("web.shop.fed.svc.east.example.com"), nil, reserved, "spec.dns.hosts[0]: Invalid value: \"web.shop.fed.svc.east.example.com\": must not have the form SERVICE.NAMESPACE.fed.svc[[.ZONE].REGION].example.com"},
		"of a policy, the zone itself":           {says("example.com"), nil, reserved, "spec.dns.hosts[0]: Invalid value: \"example.com\": must be below the zone"},
		"of a policy, the name server":           {says("ns.example.com"), nil, shared, "must not be ns.example.com, the name of the zone's name server"},
		"of a policy, granted to another":        {says("www.login.example.com"), nil, granted("shop"), "spec.dns.hosts[0]: Invalid value: \"www.login.example.com\": must not be at or below login.example.com"},
		"of a policy without settings":           {&v1beta1.PlacementPolicy{}, says("example.org"), reserved, ""},
		"of a Service, outside the zone":         {wants(`"shop.example.org"`), nil, reserved, "hosts[0]: Invalid value: \"shop.example.org\": must be a name in the zone example.com"},
		"of an Ingress, outside the zone":        {ingress("shop.example.org"), nil, reserved, ""},
		"a host, and the zone is not known yet":  {ingress(bad), nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(policies{}, nil, nil)
			p.names = func() *validation.DNSNames { return c.names }
			kind, resource, object := core.Kind("Service"), "services", "web"
			group := ""
			if _, is := c.object.(*networking.Ingress); is {
				kind, resource, object, group = networking.Kind("Ingress"), "ingresses", "front", "networking.k8s.io"
			}
			if _, is := c.object.(*v1beta1.PlacementPolicy); is {
				kind, resource, object, group = v1beta1.SchemeGroupVersion.WithKind("PlacementPolicy").GroupKind(), "placementpolicies", "front", v1beta1.SchemeGroupVersion.Group
			}
			operation := admission.Create
			if c.old != nil {
				operation = admission.Update
			}
			err := p.Validate(t.Context(), admission.NewAttributesRecord(c.object, c.old, kind.WithVersion("v1"), long, object,
				schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, "", operation, nil, false, nil), nil)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
