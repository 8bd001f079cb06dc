package propagation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/propagation/plan"
)

// A copy names the UID of its federated object. The fate of objects whose copies may turn up later is recorded by UID,
// in one ConfigMap per shard: copies in a member that is away, in a cluster that is not a member for the time being, or
// in one that is restored from a backup (ADR 63).

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

const recordsPrefix = "deleted-objects-"

func recordsName(k key) string {
	return fmt.Sprintf("%s%d", recordsPrefix, v1beta1.Shard(k.Namespace, k.Name))
}

// recordDeletion records what happens to the copies of an object that is being deleted. away: members may have copies
// of which nothing is known yet, so older records are kept.
func (h *hub) recordDeletion(ctx context.Context, k key, uid types.UID, fate plan.Fate, away bool) error {
	now := time.Now()
	record := plan.Deletion{Fate: fate, At: now, Object: k.String()}
	got, err := h.patchRecords(ctx, k, map[string]any{string(uid): record.String()})
	if apierrors.IsNotFound(err) {
		empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		empty.SetName(recordsName(k))
		if _, err := h.orphanRecords().Create(ctx, empty, metav1.CreateOptions{FieldManager: FieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		got, err = h.patchRecords(ctx, k, map[string]any{string(uid): record.String()})
	}
	if err != nil {
		return err
	}
	records, _, _ := unstructured.NestedStringMap(got.Object, "data")
	expired := map[string]any{}
	for _, key := range plan.Expired(records, away, now) {
		expired[key] = nil
	}
	if len(expired) > 0 {
		if _, err := h.patchRecords(ctx, k, expired); err != nil { // the next record will retry
			klog.FromContext(ctx).Error(err, "Cannot remove expired records of deleted objects yet", "configMap", recordsName(k))
		}
	}
	return nil
}

// fateOf returns the recorded fate of a copy's object, or "".
func (h *hub) fateOf(ctx context.Context, k key, copied *unstructured.Unstructured) (plan.Fate, error) {
	u, err := h.orphanRecords().Get(ctx, recordsName(k), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	value, _, _ := unstructured.NestedString(u.Object, "data", string(plan.SourceUID(copied)))
	record, _ := plan.ParseDeletion(value)
	return record.Fate, nil
}

func (h *hub) orphanRecords() dynamic.ResourceInterface {
	return h.view.Client.Resource(configMaps).Namespace(v1beta1.FederationNamespace)
}

func (h *hub) patchRecords(ctx context.Context, k key, data map[string]any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return nil, err
	}
	return h.orphanRecords().Patch(ctx, recordsName(k), types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
}

// recordedUIDs returns the UIDs of the objects whose deletion is recorded.
func (h *hub) recordedUIDs(ctx context.Context) (map[types.UID]bool, error) {
	all, err := h.orphanRecords().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	uids := map[types.UID]bool{}
	for i := range all.Items {
		if !strings.HasPrefix(all.Items[i].GetName(), recordsPrefix) {
			continue
		}
		records, _, _ := unstructured.NestedStringMap(all.Items[i].Object, "data")
		for uid, value := range records {
			if _, ok := plan.ParseDeletion(value); ok {
				uids[types.UID(uid)] = true
			}
		}
	}
	return uids, nil
}
