package v1beta1

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestFederated(t *testing.T) {
	for object, want := range map[string]bool{
		"configmaps default web":                      true,
		"configmaps default kube-root-ca.crt":         false,
		"configmaps kube-system web":                  false,
		"configmaps kube-public web":                  false,
		"configmaps kube-node-lease web":              false,
		"configmaps federation-system web":            false,
		"secrets shop web":                            true,
		"services shop web":                           true,
		"deployments.apps shop web":                   true,
		"replicasets.apps shop web":                   true,
		"ingresses.networking.k8s.io shop web":        true,
		"namespaces  shop":                            true,
		"namespaces  default":                         false,
		"namespaces  kube-system":                     false,
		"namespaces  federation-system":               false,
		"serviceaccounts default web":                 true,
		"serviceaccounts default default":             false,
		"statefulsets.apps shop web":                  true,
		"jobs.batch shop web":                         true,
		"horizontalpodautoscalers.autoscaling shop a": true,
		"pods shop web":                               false,
		"clusters.federation  east":                   false,
		"deployments.extensions shop web":             false,
		"ingressclasses.networking.k8s.io  nginx":     false,
		"services.serving.knative.dev shop namesakes": false,
	} {
		part := strings.Split(object, " ")
		if got := Federated(schema.ParseGroupResource(part[0]), part[1], part[2], ""); got != want {
			t.Errorf("%s: %v", object, got)
		}
	}
	if Federated(schema.GroupResource{Resource: "secrets"}, "shop", "token", corev1.SecretTypeServiceAccountToken) {
		t.Error("the token of a service account is federated")
	}
}
