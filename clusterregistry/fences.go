package clusterregistry

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// fencesEvery is how often a member is asked whether its fences hold.
const fencesEvery = 10 * time.Minute

// askFences finds out whether fences hold our account in the member, by what they are for: it tries to write an object that the federation does not manage, into a namespace where it may not
// write. It is a dry run, so where nobody refuses nothing is written either. Rights would not allow us to look at the policies themselves. What else goes wrong says nothing.
func (m *Member) askFences(ctx context.Context) {
	if !m.asked.IsZero() && time.Since(m.asked) < fencesEvery {
		return
	}
	m.asked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, inventoryLast)
	defer cancel()
	_, err := m.Core.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.FenceTestConfigMap}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
		m.unfenced = true
	case strings.Contains(err.Error(), "ValidatingAdmissionPolicy"):
		m.unfenced = false
	}
}
