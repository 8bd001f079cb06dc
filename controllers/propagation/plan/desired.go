package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"federation/apiserver/apis/federation/v1beta1"
)

// Target is the member for which something is decided.
type Target struct {
	// Cluster is the name of the member.
	Cluster string
	// Labels of its Cluster object, for selectors.
	Labels map[string]string
	// Federation is the UID of the federation, by which copies are marked as ours.
	Federation string
}

// Presence says whether a copy is to be in a member.
type Presence int

const (
	// Undecided: there is no placement yet; the member stays as it is.
	Undecided Presence = iota
	// Absent: no copy of ours is to be there.
	Absent
	// Released: the copy stays, but is no longer ours.
	Released
	// IfThere: a copy that is there is to look as desired, a new one is not made (no replicas fall to it).
	IfThere
	// Present: the copy is to be there as desired.
	Present
)

// Desired is what is wanted in one member, and why.
type Desired struct {
	Presence Presence
	// Object is the configuration to apply, for Present and IfThere.
	Object *unstructured.Unstructured
	// Hash identifies Object.
	Hash string
	// Source is the UID of the federated object that the copy is of.
	Source types.UID
	// Foreground: a copy that has to go is deleted after what it owns.
	Foreground bool
	// Reason says in a few words why, for people.
	Reason string
}

// Desire decides what a member is to hold of a federated object. A nil object is one that is no more.
func Desire(k *Kind, federated *unstructured.Unstructured, t Target) Desired {
	if federated == nil {
		return Desired{Presence: Absent, Reason: "deleted at the federation"}
	}
	if federated.GetDeletionTimestamp() != nil {
		return leaving(federated)
	}
	if !Selected(federated, t.Labels) {
		return Desired{Presence: Absent, Reason: "the cluster selector does not match"}
	}
	if !k.Divided {
		return desired(k, federated, t, nil)
	}
	placement := v1beta1.ParsePlacement(federated.GetAnnotations()[v1beta1.PlacementAnnotation])
	if placement == nil {
		return Desired{Presence: Undecided, Reason: "waits for a placement"}
	}
	replicas := placement.Clusters[t.Cluster] + placement.Overflow[t.Cluster]
	d := desired(k, federated, t, &replicas)
	d.Reason = fmt.Sprintf("%d replicas by placement", replicas)
	if replicas == 0 {
		d.Presence = IfThere
	}
	return d
}

func leaving(federated *unstructured.Unstructured) Desired {
	d := Desired{Presence: Absent, Reason: "being deleted at the federation"}
	for _, f := range federated.GetFinalizers() {
		switch f {
		case v1beta1.OrphanMarkFinalizer:
			return Desired{Presence: Released, Reason: "orphaned at the federation"}
		case "foregroundDeletion":
			d.Foreground = true
		}
	}
	return d
}

// Selected tells whether the object's cluster-selector annotation, if there is one, matches the
// labels of a cluster. A selector that cannot be read selects nothing (admission refuses it).
func Selected(federated *unstructured.Unstructured, clusterLabels map[string]string) bool {
	value, ok := federated.GetAnnotations()[v1beta1.ClusterSelectorAnnotation]
	if !ok {
		return true
	}
	selector, errs := v1beta1.ParseClusterSelector(value, field.NewPath(v1beta1.ClusterSelectorAnnotation))
	return len(errs) == 0 && selector.Matches(labels.Set(clusterLabels))
}

func desired(k *Kind, federated *unstructured.Unstructured, t Target, replicas *int64) Desired {
	content := make(map[string]any, len(federated.Object))
	for key, value := range federated.Object {
		if key != "metadata" && key != "status" {
			content[key] = withoutNulls(value)
		}
	}
	content["apiVersion"], content["kind"] = k.Resource.GroupVersion().String(), k.Kind
	for _, path := range k.Drop {
		unstructured.RemoveNestedField(content, path...)
	}
	if replicas != nil {
		spec, _ := content["spec"].(map[string]any)
		spec["replicas"] = *replicas
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetName(federated.GetName())
	u.SetNamespace(federated.GetNamespace())
	u.SetLabels(withMark(federated.GetLabels(), t.Federation))
	annotations := passedOn(federated.GetAnnotations())
	u.SetAnnotations(annotations)
	hash := hashOf(u.Object)
	annotations[v1beta1.AppliedHashAnnotation], annotations[v1beta1.SourceAnnotation] = hash, string(federated.GetUID())
	u.SetAnnotations(annotations)
	return Desired{Presence: Present, Object: u, Hash: hash, Source: federated.GetUID(), Reason: "goes to every selected cluster"}
}

// withoutNulls copies a JSON value without the nulls in its maps: they say nothing.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			if item != nil {
				out[key] = withoutNulls(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = withoutNulls(item)
		}
		return out
	}
	return runtime.DeepCopyJSONValue(value)
}

func withMark(from map[string]string, federation string) map[string]string {
	out := maps.Clone(from)
	if out == nil {
		out = map[string]string{}
	}
	out[v1beta1.ManagedByLabel] = federation
	return out
}

// notPassedOn are annotations that speak of the federated object, not of its copies.
var notPassedOn = map[string]bool{
	"kubectl.kubernetes.io/last-applied-configuration": true,
	"deployment.kubernetes.io/revision":                true,
}

func passedOn(from map[string]string) map[string]string {
	out := make(map[string]string, len(from)+1)
	for key, value := range from {
		ours := strings.HasPrefix(key, "federation.kubernetes.io/") || strings.HasPrefix(key, "federation.alpha.kubernetes.io/")
		if !ours && !notPassedOn[key] {
			out[key] = value
		}
	}
	return out
}

// hashOf hashes a JSON value: equal values give equal hashes, since maps are marshalled in order.
func hashOf(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		return err.Error() // cannot happen: the value came from JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
