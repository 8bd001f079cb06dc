package main

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
)

func TestFailedComponentsAreShown(t *testing.T) {
	f := &client.Federation{Kube: fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.ComponentsConfigMap},
		Data: map[string]string{
			"one.placement":              `{"component":"placement","restarts":2,"since":"2026-01-01T12:00:00Z","running":false,"message":"panic: over\nan object"}`,
			"two.propagation_of_widgets": `{"component":"propagation of widgets","restarts":1,"since":"2026-01-01T12:00:30Z","running":true,"message":"the definition is gone"}`,
		},
	})}
	all, err := f.Components(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printComponents(&out, all, time.Date(2026, 1, 1, 12, 1, 0, 0, time.UTC))
	want := `
FAILED COMPONENT         HOST   STATUS      RESTARTS   SINCE   MESSAGE
placement                one    Down        2          60s     panic: over an object
propagation of widgets   two    Restarted   1          30s     the definition is gone
`
	if out.String() != want {
		t.Errorf("shown:%s\nwant:%s", out.String(), want)
	}
}
