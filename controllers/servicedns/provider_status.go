package servicedns

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
)

// ProviderStatus keeps the condition of each DNS provider, by its name, and writes what changes to a ConfigMap.
type ProviderStatus struct {
	mu         sync.Mutex
	conditions map[string]metav1.Condition
	changed    supervisor.Wake
}

// NewProviderStatus makes one without providers.
func NewProviderStatus() *ProviderStatus {
	return &ProviderStatus{conditions: map[string]metav1.Condition{}, changed: supervisor.NewWake()}
}

// Report takes in a provider's state.
func (s *ProviderStatus) Report(state ProviderState) {
	is := metav1.Condition{Type: v1beta1.DNSPublished, Status: metav1.ConditionFalse, Reason: state.Reason, Message: state.Message}
	if state.Published {
		is.Status = metav1.ConditionTrue
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.conditions[state.Provider]
	if was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
		return
	}
	if is.LastTransitionTime = was.LastTransitionTime; was.Status != is.Status {
		is.LastTransitionTime = metav1.Now()
	}
	s.conditions[state.Provider] = is
	s.changed.Signal()
}

// Run writes what changes until ctx ends, and tries again where that fails.
func (s *ProviderStatus) Run(ctx context.Context, client kubernetes.Interface) {
	s.changed.Signal()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		}
		if err := s.write(ctx, client); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to update the status of DNS providers, will retry", "configMap", v1beta1.DNSProvidersConfigMap)
			s.changed.Signal()
		}
		select { // at most one write in that time
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

func (s *ProviderStatus) write(ctx context.Context, client kubernetes.Interface) error {
	s.mu.Lock()
	now := maps.Clone(s.conditions)
	s.mu.Unlock()
	data := make(map[string]string, len(now))
	for provider, condition := range now {
		text, err := json.Marshal(condition)
		if err != nil {
			return err
		}
		data[provider] = string(text)
	}
	want := applycorev1.ConfigMap(v1beta1.DNSProvidersConfigMap, v1beta1.FederationNamespace).WithData(data)
	_, err := client.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Apply(ctx, want, metav1.ApplyOptions{FieldManager: "federation-dns", Force: true})
	return err
}
