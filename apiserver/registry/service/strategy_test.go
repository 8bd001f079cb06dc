package service

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"

	"federation/apiserver/apis/federation/v1beta1"
)

func service(serviceType core.ServiceType, ip string, ips ...string) *core.Service {
	return &core.Service{Spec: core.ServiceSpec{Type: serviceType, ClusterIP: ip, ClusterIPs: ips}}
}

func TestPairClusterIPs(t *testing.T) {
	for name, c := range map[string]struct {
		service, old *core.Service
		want         []string
	}{
		"none":                          {service("", ""), nil, nil},
		"new, singular only":            {service("", "None"), nil, []string{"None"}},
		"new, both":                     {service("", "10.0.0.1", "10.0.0.1", "2001:db8::1"), nil, []string{"10.0.0.1", "2001:db8::1"}},
		"update by an old client":       {service("", "10.0.0.1"), service("", "10.0.0.1", "10.0.0.1"), []string{"10.0.0.1"}},
		"singular cleared":              {service("", "", "10.0.0.1"), service("", "10.0.0.1", "10.0.0.1"), nil},
		"singular changed":              {service("", "10.0.0.2", "10.0.0.1"), service("", "10.0.0.1", "10.0.0.1"), []string{"10.0.0.2"}},
		"both changed: left as written": {service("", "10.0.0.2", "10.0.0.3"), service("", "10.0.0.1", "10.0.0.1"), []string{"10.0.0.3"}},
	} {
		pairClusterIPs(c.service, c.old)
		if !slices.Equal(c.service.Spec.ClusterIPs, c.want) {
			t.Errorf("%s: %v, want %v", name, c.service.Spec.ClusterIPs, c.want)
		}
	}
}

// placeholder is the cluster IP of shop/web.
const placeholder = "245.42.120.196"

// A Service's cluster IPs after a write, and whether the write is accepted.
func TestClusterIPs(t *testing.T) {
	const given = "10.200.0.7" // a clusterset IP
	asks := func(value string, s *core.Service) *core.Service {
		s.Annotations = map[string]string{v1beta1.ClusterSetIPAnnotation: value}
		return s
	}
	dual := func(s *core.Service) *core.Service {
		policy := core.IPFamilyPolicyPreferDualStack
		s.Spec.IPFamilyPolicy = &policy
		return s
	}
	for name, c := range map[string]struct {
		service, old *core.Service // no old: it is created
		want         string        // with a comma between; "!": refused
	}{
		"created":                                   {service("ClusterIP", ""), nil, placeholder},
		"created as a load balancer":                {service("LoadBalancer", ""), nil, placeholder},
		"created with both families":                {dual(service("ClusterIP", "")), nil, placeholder + ",100::1b2c:e43c:8d2a:78c4"},
		"created headless":                          {service("ClusterIP", "None"), nil, "None"},
		"created as a name":                         {service("ExternalName", ""), nil, ""},
		"created with its own":                      {service("ClusterIP", "10.96.0.1"), nil, "10.96.0.1"},
		"created from a manifest of another":        {service("ClusterIP", "240.1.2.3", "240.1.2.3"), nil, placeholder},
		"created as a name, from another":           {service("ExternalName", "240.1.2.3", "240.1.2.3"), nil, ""},
		"created, asks":                             {asks("auto", service("ClusterIP", "")), nil, ""},
		"left out":                                  {service("ClusterIP", ""), service("ClusterIP", placeholder, placeholder), placeholder},
		"written back":                              {service("ClusterIP", placeholder, placeholder), service("ClusterIP", placeholder, placeholder), placeholder},
		"one from before that had none":             {service("ClusterIP", ""), service("ClusterIP", ""), placeholder},
		"left out, of one with its own":             {service("ClusterIP", ""), service("ClusterIP", "10.96.0.1", "10.96.0.1"), "10.96.0.1"},
		"left out, of a headless one":               {service("ClusterIP", ""), service("ClusterIP", "None", "None"), "None"},
		"changed":                                   {service("ClusterIP", "10.96.0.2"), service("ClusterIP", placeholder, placeholder), "!"},
		"its own changed":                           {service("ClusterIP", "10.96.0.2"), service("ClusterIP", "10.96.0.1", "10.96.0.1"), "!"},
		"made headless":                             {service("ClusterIP", "None"), service("ClusterIP", placeholder, placeholder), "!"},
		"one from before made headless":             {service("ClusterIP", "None"), service("ClusterIP", ""), "!"},
		"to a name":                                 {service("ExternalName", placeholder, placeholder), service("ClusterIP", placeholder, placeholder), ""},
		"back from a name":                          {service("ClusterIP", ""), service("ExternalName", ""), placeholder},
		"back from a name, with its own":            {service("ClusterIP", "10.96.0.1"), service("ExternalName", ""), "10.96.0.1"},
		"takes both families":                       {dual(service("ClusterIP", placeholder, placeholder)), service("ClusterIP", placeholder, placeholder), placeholder + ",100::1b2c:e43c:8d2a:78c4"},
		"takes one again":                           {service("ClusterIP", placeholder, placeholder, "100::1b2c:e43c:8d2a:78c4"), dual(service("ClusterIP", placeholder, placeholder, "100::1b2c:e43c:8d2a:78c4")), placeholder},
		"asks now":                                  {asks("auto", service("ClusterIP", placeholder, placeholder)), service("ClusterIP", placeholder, placeholder), ""},
		"it is given one":                           {asks(given, service("ClusterIP", "")), asks("auto", service("ClusterIP", "")), given},
		"it is given another":                       {asks("10.200.0.8", service("ClusterIP", given, given)), asks(given, service("ClusterIP", given, given)), "10.200.0.8"},
		"asks no more":                              {service("ClusterIP", given, given), asks(given, service("ClusterIP", given, given)), placeholder},
		"is given one, and has its own":             {asks(given, service("ClusterIP", "10.96.0.1", "10.96.0.1")), asks("auto", service("ClusterIP", "10.96.0.1", "10.96.0.1")), "10.96.0.1"},
		"is given one, and is headless":             {asks(given, service("ClusterIP", "None", "None")), asks("auto", service("ClusterIP", "None", "None")), "None"},
		"to a name, with a clusterset IP":           {asks(given, service("ExternalName", given, given)), asks(given, service("ClusterIP", given, given)), ""},
		"an old client leaves out the second field": {service("ClusterIP", placeholder), service("ClusterIP", placeholder, placeholder), placeholder},
	} {
		for _, s := range []*core.Service{c.service, c.old} {
			if s != nil {
				fill(s)
			}
		}
		s := newStrategy()
		var errs field.ErrorList
		if c.old == nil {
			s.PrepareForCreate(t.Context(), c.service)
			errs = s.Validate(t.Context(), c.service)
		} else {
			s.PrepareForUpdate(t.Context(), c.service, c.old)
			errs = s.ValidateUpdate(t.Context(), c.service, c.old)
		}
		got := strings.Join(c.service.Spec.ClusterIPs, ",")
		if len(errs) > 0 {
			got = "!"
		}
		if first, _, _ := strings.Cut(got, ","); got != c.want || got != "!" && first != c.service.Spec.ClusterIP {
			t.Errorf("%s: clusterIP %q, clusterIPs %q, errors %v; want %q", name, c.service.Spec.ClusterIP, c.service.Spec.ClusterIPs, errs, c.want)
		}
	}
}

// fill fills in what else a Service needs to be valid.
func fill(s *core.Service) {
	cluster := core.ServiceInternalTrafficPolicyCluster
	s.Name, s.Namespace, s.ResourceVersion = "web", "shop", "1"
	s.Spec.SessionAffinity, s.Spec.Ports = core.ServiceAffinityNone, []core.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80), Protocol: core.ProtocolTCP}}
	switch s.Spec.Type {
	case core.ServiceTypeExternalName:
		s.Spec.ExternalName = "web.example.com"
	case core.ServiceTypeLoadBalancer:
		s.Spec.ExternalTrafficPolicy, s.Spec.AllocateLoadBalancerNodePorts = core.ServiceExternalTrafficPolicyCluster, new(true)
		fallthrough
	default:
		s.Spec.InternalTrafficPolicy = &cluster
	}
}

// An object that is not federated has no cluster IP of ours.
func TestServicesOfTheFederationItselfAreGivenNone(t *testing.T) {
	s := service("ClusterIP", "")
	s.Name, s.Namespace = "dns", "kube-system"
	if giveClusterIPs(s, &core.Service{}); s.Spec.ClusterIP != "" {
		t.Error(s.Spec.ClusterIP)
	}
}

func TestOnlyAnOwnClusterIPIsWarnedOf(t *testing.T) {
	for ip, warns := range map[string]bool{"": false, "None": false, placeholder: false, "10.96.0.1": true} {
		if got := fixedClusterIP(service("ClusterIP", ip)); (len(got) > 0) != warns {
			t.Errorf("%q: %q", ip, got)
		}
	}
}
