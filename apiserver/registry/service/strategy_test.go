package service

import (
	"slices"
	"testing"

	"k8s.io/kubernetes/pkg/apis/core"
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

func TestClusterIPMayNotChange(t *testing.T) {
	for name, c := range map[string]struct {
		service, old *core.Service
		allowed      bool
	}{
		"same":              {service("ClusterIP", "10.0.0.1"), service("ClusterIP", "10.0.0.1"), true},
		"cleared":           {service("ClusterIP", ""), service("ClusterIP", "10.0.0.1"), false},
		"set afterwards":    {service("ClusterIP", "None"), service("ClusterIP", ""), false},
		"to ExternalName":   {service("ExternalName", ""), service("ClusterIP", "10.0.0.1"), true},
		"from ExternalName": {service("ClusterIP", "10.0.0.1"), service("ExternalName", ""), true},
	} {
		if errs := immutableClusterIP(c.service, c.old); (len(errs) == 0) != c.allowed {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
