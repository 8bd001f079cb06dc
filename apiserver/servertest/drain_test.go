package servertest

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestWhoMayDrainChangesNothingElse: by clusters/NAME/drain a cluster is cordoned, drained and brought back; its address, labels, weight and other
// taints stay, and so does what undrain restores.
func TestWhoMayDrainChangesNothingElse(t *testing.T) {
	newCluster(t, "to-drain", "192.0.2.1:6443")
	clusters := shared.dynamic.Resource(v1beta1.ClustersResource)
	before := v1beta1.Drain{Step: v1beta1.DrainStepMove, DNSWeight: new(int32(50))}
	patch := `{"metadata":{"annotations":{"` + v1beta1.DrainAnnotation + `":` + strconv.Quote(before.String()) + `}},"spec":{"taints":[{"key":"ours","effect":"NoExecute"}]}}`
	if _, err := clusters.Patch(t.Context(), "to-drain", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	bind(t, "federation-cluster-drainer")
	becomesTrue(t, "the right to drain", func() bool { return mayDo(t, "federation-cluster-drainer", "patch clusters/drain to-drain") })
	config := rest.CopyConfig(shared.admin)
	config.Impersonate.UserName = "federation-cluster-drainer"
	drainer, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	other := v1beta1.Drain{Step: v1beta1.DrainStepReturn, DNSWeight: new(int32(0)), Cordoned: true, Drill: "another"}
	patch = `{"metadata":{"labels":{"tier":"gold"},"finalizers":["x.example.test/y"],"annotations":{"x":"y","` + v1beta1.DrainAnnotation + `":` + strconv.Quote(other.String()) + `}},
		"spec":{"drain":{"ttlSeconds":5},"dnsWeight":7,"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"192.0.2.66:6443"}],"secretRef":{"name":"another"},
		"taints":[{"key":"` + v1beta1.TaintUnschedulable + `","effect":"NoSchedule"},{"key":"mine","effect":"NoExecute"}]},"status":{"conditions":[]}}`
	u, err := drainer.Resource(v1beta1.ClustersResource).Patch(t.Context(), "to-drain", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, v1beta1.DrainSubresource)
	if err != nil {
		t.Fatal(err)
	}
	c := clusterFrom(t, u)
	var taints []string
	for _, taint := range c.Spec.Taints {
		taints = append(taints, taint.ToString())
	}
	if got := strings.Join(taints, " "); c.Spec.Drain == nil || *c.Spec.Drain.TTLSeconds != 5 || got != "ours:NoExecute "+v1beta1.TaintUnschedulable+":NoSchedule" {
		t.Errorf("drain %+v, taints %s", c.Spec.Drain, got)
	}
	if c.Spec.DNSWeight != nil || c.Spec.SecretRef.Name != "to-drain" || c.Spec.ServerAddressByClientCIDRs[0].ServerAddress != "192.0.2.1:6443" || len(c.Labels) > 0 || len(c.Finalizers) > 0 || c.Annotations["x"] != "" {
		t.Errorf("changed: %+v %+v", c.ObjectMeta, c.Spec)
	}
	if d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation]); err != nil || d.Step != v1beta1.DrainStepReturn || d.DNSWeight == nil || *d.DNSWeight != 50 || d.Cordoned || d.Drill != "" {
		t.Errorf("its record is %+v, %v", d, err)
	}
	u, err = drainer.Resource(v1beta1.ClustersResource).Patch(t.Context(), "to-drain", types.MergePatchType, []byte(`{"spec":{"drain":null,"taints":[]}}`), metav1.PatchOptions{}, v1beta1.DrainSubresource)
	if err != nil {
		t.Fatal(err)
	}
	if c = clusterFrom(t, u); c.Spec.Drain != nil || len(c.Spec.Taints) != 1 || !c.Spec.Taints[0].MatchTaint(&corev1.Taint{Key: "ours", Effect: corev1.TaintEffectNoExecute}) {
		t.Errorf("brought back: %+v", c.Spec)
	}
	_, err = drainer.Resource(v1beta1.ClustersResource).Patch(t.Context(), "to-drain", types.MergePatchType, []byte(`{"spec":{"dnsWeight":7}}`), metav1.PatchOptions{})
	if gone := drainer.Resource(v1beta1.ClustersResource).Delete(t.Context(), "to-drain", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) || !apierrors.IsForbidden(gone) {
		t.Errorf("a change: %v, a deletion: %v; want both refused", err, gone)
	}
}

func clusterFrom(t *testing.T, u *unstructured.Unstructured) *v1beta1.Cluster {
	t.Helper()
	c := &v1beta1.Cluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c); err != nil {
		t.Fatal(err)
	}
	return c
}
