package propagation

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/held"
)

// An object can be orphaned while a cluster is away. Its copy there still bears our mark, and would be
// taken for stale when the cluster returns. So each such copy is noted in a ConfigMap per cluster.

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

func orphansName(cluster string) string { return "orphaned-in-" + cluster }

// orphanKey is the key of the ConfigMap's data: letters that a ConfigMap allows.
func orphanKey(k key) string {
	return k.kind.Resource.Resource + "." + k.kind.Resource.Group + "_" + k.Namespace + "_" + k.Name
}

// noteOrphan notes that the copy in a cluster that is away is to stay.
func (c *Controller) noteOrphan(ctx context.Context, cluster string, k key) error {
	maps := c.Client.Resource(configMaps).Namespace(v1beta1.FederationNamespace)
	body, err := json.Marshal(map[string]any{"data": map[string]string{orphanKey(k): metav1.Now().UTC().Format("2006-01-02T15:04:05Z")}})
	if err != nil {
		return err
	}
	_, err = maps.Patch(ctx, orphansName(cluster), types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
	if !apierrors.IsNotFound(err) {
		return err
	}
	empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	empty.SetName(orphansName(cluster))
	if _, err := maps.Create(ctx, empty, metav1.CreateOptions{FieldManager: FieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = maps.Patch(ctx, orphansName(cluster), types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
	return err
}

// wasOrphaned tells whether the copy in a cluster was noted as one that stays.
func (c *Controller) wasOrphaned(ctx context.Context, cluster string, k key) (bool, error) {
	u, err := c.Client.Resource(configMaps).Namespace(v1beta1.FederationNamespace).Get(ctx, orphansName(cluster), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, found, _ := unstructured.NestedString(u.Object, "data", orphanKey(k))
	return found, nil
}

// clearOrphans forgets what was noted of a cluster, once all of its stale copies have been dealt with. The
// ConfigMap itself stays: we have no right to delete any.
func (c *Controller) clearOrphans(ctx context.Context, cluster string) {
	k := types.NamespacedName{Namespace: v1beta1.FederationNamespace, Name: orphansName(cluster)}
	obj, ok, _ := c.Informers(configMaps).GetStore().GetByKey(k.String())
	if !ok || held.Object(obj).Object["data"] == nil {
		return
	}
	_, err := c.Client.Resource(configMaps).Namespace(k.Namespace).Patch(ctx, k.Name, types.MergePatchType, []byte(`{"data":null}`), metav1.PatchOptions{FieldManager: FieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "The notes of orphans stay until the cluster is engaged again", "cluster", cluster)
	}
}
