package servicedns

import (
	"context"
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestProviderStatus_IsConditions(t *testing.T) {
	s, client := NewProviderStatus(), fake.NewClientset()
	state := func(published bool, reason string) metav1.Condition {
		t.Helper()
		s.Report(ProviderState{Provider: "outside", Published: published, Reason: reason, Message: "in words"})
		if err := s.write(context.Background(), client); err != nil {
			t.Fatal(err)
		}
		m, err := client.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(context.Background(), v1beta1.DNSProvidersConfigMap, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var c metav1.Condition
		if err := json.Unmarshal([]byte(m.Data["outside"]), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := state(true, ReasonPublished)
	if first.Type != v1beta1.DNSPublished || first.Status != metav1.ConditionTrue || first.LastTransitionTime.IsZero() {
		t.Errorf("%+v", first)
	}
	if again := state(true, ReasonDriftCorrected); again.Reason != ReasonDriftCorrected || !again.LastTransitionTime.Equal(&first.LastTransitionTime) {
		t.Errorf("%+v: want another reason at the time of %v", again, first.LastTransitionTime)
	}
	if failing := state(false, ReasonFailing); failing.Status != metav1.ConditionFalse {
		t.Errorf("%+v", failing)
	}
}
