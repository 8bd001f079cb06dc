package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestProfile(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC))
	c := &v1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east-a", Labels: map[string]string{"tier": "gold", ManagerLabel: "somebody"}, CreationTimestamp: at},
		Status: v1beta1.ClusterStatus{
			UID: "u-1", Region: "east", Zones: []string{"a", "b"}, KubernetesVersion: "v1.36.3",
			Conditions: []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady, Status: corev1.ConditionFalse, Reason: "ClusterNotReachable", Message: "refused", LastTransitionTime: metav1.NewTime(at.Add(time.Minute))}},
		},
	}
	for name, test := range map[string]struct {
		federation Federation
		change     func(*v1beta1.Cluster)
		want       string
	}{
		"all that is known": {Federation{Name: "fed", Server: "https://fed.example.com:6443/", CA: []byte("PEM")}, func(*v1beta1.Cluster) {}, `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata:
  namespace: federation-system
  name: east-a
  labels: {tier: gold, x-k8s.io/cluster-manager: fed, multicluster.x-k8s.io/inventory-member-id: u-1}
spec: {displayName: east-a, clusterManager: {name: fed}}
status:
  conditions:
  - {type: ControlPlaneHealthy, status: "False", reason: ClusterNotReachable, message: refused, lastTransitionTime: "2026-11-25T10:01:00Z"}
  - {type: Joined, status: "True", reason: ClusterJoined, message: "", lastTransitionTime: "2026-11-25T10:00:00Z"}
  version: {kubernetes: v1.36.3}
  properties:
  - {name: cluster.clusterset.k8s.io, value: east-a}
  - {name: topology.kubernetes.io/region, value: east}
  - {name: topology.kubernetes.io/zone, value: "a,b"}
  accessProviders:
  - name: federation
    cluster: {server: "https://fed.example.com:6443/apis/federation/v1beta1/clusters/east-a/proxy", certificate-authority-data: UEVN}
`},
		"nothing is known yet": {Federation{Name: "fed"}, func(c *v1beta1.Cluster) { c.Status, c.Labels = v1beta1.ClusterStatus{}, nil }, `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {namespace: federation-system, name: east-a, labels: {x-k8s.io/cluster-manager: fed}}
spec: {displayName: east-a, clusterManager: {name: fed}}
status:
  conditions:
  - {type: ControlPlaneHealthy, status: Unknown, reason: NotCheckedYet, message: "", lastTransitionTime: "2026-11-25T10:00:00Z"}
  - {type: Joined, status: "True", reason: ClusterJoined, message: "", lastTransitionTime: "2026-11-25T10:00:00Z"}
  properties:
  - {name: cluster.clusterset.k8s.io, value: east-a}
`},
		"an identity that is no label": {Federation{Name: "fed"}, func(c *v1beta1.Cluster) {
			c.Status, c.Labels = v1beta1.ClusterStatus{UID: "a member\nmay say anything"}, nil
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			of := c.DeepCopy()
			test.change(of)
			got := Profile(test.federation, of)
			if test.want == "" {
				if got.GetLabels()[MemberLabel] != "" {
					t.Errorf("labels %v", got.GetLabels())
				}
				return
			}
			want := map[string]any{}
			if err := yaml.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}
