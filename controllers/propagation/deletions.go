package propagation

import (
	"context"
	"encoding/json"
	"fmt"
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

// A copy names the UID of its federated object. What became of objects whose copies may turn up after them is recorded by their UIDs,
// in one ConfigMap for each shard: of a member that is away, of a cluster that is not a member for the time being, of one that is
// restored from a backup (ADR 63).

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

const recordsPrefix = "deleted-objects-"

func recordsName(k key) string {
	return fmt.Sprintf("%s%d", recordsPrefix, v1beta1.Shard(k.Namespace, k.Name))
}

// recordDeletion records what becomes of the copies of an object that is being deleted. away: there are members that may have copies of
// which nothing is known yet, so older records are kept.
func (c *Controller) recordDeletion(ctx context.Context, k key, uid types.UID, fate plan.Fate, away bool) error {
	now := time.Now()
	record := plan.Deletion{Fate: fate, At: now, Object: k.String()}
	got, err := c.patchRecords(ctx, k, map[string]any{string(uid): record.String()})
	if apierrors.IsNotFound(err) {
		empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		empty.SetName(recordsName(k))
		if _, err := c.records().Create(ctx, empty, metav1.CreateOptions{FieldManager: FieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		got, err = c.patchRecords(ctx, k, map[string]any{string(uid): record.String()})
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
		if _, err := c.patchRecords(ctx, k, expired); err != nil { // the next record will do it
			klog.FromContext(ctx).Error(err, "Records of deleted objects that have expired stay for now", "configMap", recordsName(k))
		}
	}
	return nil
}

// fateOf returns what was recorded of the object that a copy is of; "" where nothing was.
func (c *Controller) fateOf(ctx context.Context, k key, copied *unstructured.Unstructured) (plan.Fate, error) {
	u, err := c.records().Get(ctx, recordsName(k), metav1.GetOptions{})
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

// observe is m.observe of a copy that may be of an object which had the name before. If that is known to have been deleted, the copy goes
// first. If not, the federation has never seen it, as after a restore from a backup: then the copy is adopted.
func (c *Controller) observe(ctx context.Context, m *member, k key, federated *unstructured.Unstructured) (have *unstructured.Unstructured, settled string, err error) {
	have, settled = m.observe(k)
	if federated == nil || have == nil || federated.GetDeletionTimestamp() != nil || !plan.OfAnother(federated, have) {
		return have, settled, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
	defer cancel()
	if err := c.confirm(ctx, k, federated); err != nil {
		return have, settled, err
	}
	fate, err := c.fateOf(ctx, k, have)
	if err != nil || fate != "" {
		return have, settled, err
	}
	m.adopts(k, plan.SourceUID(have))
	m.event(c.Recorder, v1beta1.EventCopyAdopted, "%s is taken over as it is: nothing is known of the object that it is a copy of (UID %s)", k, plan.SourceUID(have))
	have, settled = m.observe(k)
	return have, settled, nil
}

func (c *Controller) records() dynamic.ResourceInterface {
	return c.Client.Resource(configMaps).Namespace(v1beta1.FederationNamespace)
}

func (c *Controller) patchRecords(ctx context.Context, k key, data map[string]any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return nil, err
	}
	return c.records().Patch(ctx, recordsName(k), types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
}
