package client

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestClusterPatch: a patch has what changed, takes away what is gone, and is for the version that was read.
func TestClusterPatch(t *testing.T) {
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a", ResourceVersion: "7"}, Spec: v1beta1.ClusterSpec{DNSWeight: new(int32(30))}}
	if p, err := clusterPatch(c, c.DeepCopy()); p != nil || err != nil {
		t.Errorf("nothing changed: patch %s, %v", p, err)
	}
	drained := c.DeepCopy()
	drained.Spec.Drain = &v1beta1.ClusterDrain{TTLSeconds: new(int32(5))}
	marked := c.DeepCopy()
	marked.Annotations = map[string]string{v1beta1.DrainAnnotation: "{}"}
	for _, test := range []struct {
		from *v1beta1.Cluster
		how  func(*v1beta1.Cluster)
		want string
	}{
		{c, func(c *v1beta1.Cluster) { c.Spec.Drain = drained.Spec.Drain }, `{"metadata":{"resourceVersion":"7"},"spec":{"drain":{"ttlSeconds":5}}}`},
		{c, func(c *v1beta1.Cluster) {
			c.Spec.Drain = &v1beta1.ClusterDrain{}
			c.Spec.Taints = []corev1.Taint{{Key: v1beta1.TaintDrain, Effect: corev1.TaintEffectNoExecute}}
		}, `{"metadata":{"resourceVersion":"7"},"spec":{"drain":{},"taints":[{"effect":"NoExecute","key":"federation.kubernetes.io/drain"}]}}`},
		{drained, func(c *v1beta1.Cluster) { c.Spec.Drain = &v1beta1.ClusterDrain{} }, `{"metadata":{"resourceVersion":"7"},"spec":{"drain":{"ttlSeconds":null}}}`},
		{drained, func(c *v1beta1.Cluster) { c.Spec.Drain = nil }, `{"metadata":{"resourceVersion":"7"},"spec":{"drain":null}}`},
		{marked, func(c *v1beta1.Cluster) { c.Annotations[v1beta1.DrainAnnotation] = "{1}" }, `{"metadata":{"annotations":{"federation.kubernetes.io/drain":"{1}"},"resourceVersion":"7"}}`},
		{marked, func(c *v1beta1.Cluster) { delete(c.Annotations, v1beta1.DrainAnnotation) }, `{"metadata":{"annotations":null,"resourceVersion":"7"}}`},
	} {
		after := test.from.DeepCopy()
		test.how(after)
		if got, err := clusterPatch(test.from, after); err != nil || string(got) != test.want {
			t.Errorf("got  %s %v\nwant %s", got, err, test.want)
		}
	}
}
