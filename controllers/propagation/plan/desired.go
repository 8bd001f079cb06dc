package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// Desired is what one member should have, and why.
type Desired struct {
	Presence Presence
	configuration
	// Source is SourceOf the federated object.
	Source string
	// Foreground: a copy that must go is deleted after what it owns.
	Foreground bool
	// Reason says briefly why.
	Reason string
	// Refusal says why the desired state is undefined: an override does not apply. The copy stays as it is.
	Refusal string
}

// configuration is what to apply, for Present and IfThere. Other clusters may share it: it is never changed.
type configuration struct {
	// Object is what to apply, or nil.
	Object *unstructured.Unstructured
	// Hash identifies Object.
	Hash string
	// Kept: the copy keeps its pod template for now, so its hash says nothing.
	Kept bool

	fresh func() []byte // Body(NotThere), which is made once
}

// Precondition is what must hold for an apply to take effect: else it is a conflict.
type Precondition struct {
	UID             types.UID
	ResourceVersion string
}

// NotThere means that no object of the name exists: no object has this version, because etcd's first write makes
// revision 2.
var NotThere = Precondition{ResourceVersion: "1"}

// Body returns the JSON to apply.
func (d Desired) Body(provided Precondition) []byte {
	if provided == NotThere && d.fresh != nil {
		return d.fresh()
	}
	return d.body(provided)
}

func (c *configuration) body(provided Precondition) []byte {
	whole, about := maps.Clone(c.Object.Object), maps.Clone(c.Object.Object["metadata"].(map[string]any))
	if whole["metadata"] = about; provided.UID != "" {
		about["uid"] = string(provided.UID)
	}
	if provided.ResourceVersion != "" {
		about["resourceVersion"] = provided.ResourceVersion
	}
	return JSON(whole)
}

// Desire decides what a member should have of a federated object.
func Desire(s Source, t Target) Desired {
	presence, number, reason := s.Wanted(t)
	d := Desired{Presence: presence, Reason: reason}
	if s.Object != nil && !s.leaving() {
		d.Source = SourceOf(s.Object)
	}
	if presence == Absent && (t.Number != nil || t.Needed != "") {
		d.Presence = IfThere // it goes, but only as far as the law, or what needs it, allows
	}
	if t.Number != nil {
		number = t.Number
	}
	switch d.Presence {
	case Present, IfThere:
		c, ok := s.sharedConfiguration(t, number)
		if !ok {
			var err error
			if c, err = s.configure(t, number); err != nil {
				return Desired{Presence: Undecided, Source: d.Source, Refusal: err.Error(), Reason: d.Reason}
			}
		}
		d.configuration = *c
	case Absent:
		d.Foreground = s.leaving() && s.hasFinalizer("foregroundDeletion")
	}
	return d
}

// configure makes the configuration to apply. An error is that of an override.
func (s Source) configure(t Target, number *int64) (*configuration, error) {
	u, err := s.contentFor(t)
	if err != nil {
		return nil, err
	}
	spec, _ := u.Object["spec"].(map[string]any)
	if field := s.dividedField(); field != "" && spec != nil {
		delete(spec, field) // without a number, a member's autoscaler owns it
		if number != nil {
			spec[field] = *number
		}
	}
	if t.Floor > 0 {
		keepsAtLeast(u, t.Floor)
	}
	if t.Template != nil {
		spec["template"] = runtime.DeepCopyJSON(t.Template)
	}
	return s.addMarks(u, t), nil
}

// addMarks marks the configuration as ours, and computes its hash.
func (s Source) addMarks(u *unstructured.Unstructured, t Target) *configuration {
	u.SetLabels(withMarks(u.GetLabels(), s.Object, t.Federation))
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if t.Scaled || LeftByAutoscaler(t.Have) {
		annotations[AutoscaledAnnotation] = "true"
		u.SetAnnotations(annotations)
	}
	if s.pacesRollout() {
		template, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "template")
		annotations[TemplateAnnotation] = hashOf(template)
		u.SetAnnotations(annotations)
	}
	c := &configuration{Object: u, Hash: hashOf(u.Object)}
	if t.Template != nil {
		c.Kept, c.Hash = true, t.Have.GetAnnotations()[v1beta1.AppliedHashAnnotation]
		if before, ok := t.Have.GetAnnotations()[TemplateAnnotation]; ok {
			annotations[TemplateAnnotation] = before
		} else {
			delete(annotations, TemplateAnnotation)
		}
	}
	annotations[v1beta1.AppliedHashAnnotation], annotations[v1beta1.SourceAnnotation] = c.Hash, SourceOf(s.Object)
	annotations[v1beta1.CopyOfAnnotation] = v1beta1.CopyOf(s.Kind.GroupKind(), s.Object.GetNamespace(), s.Object.GetName())
	u.SetAnnotations(annotations)
	return c
}

// contentFor returns the federated object as a cluster gets it, without numbers and marks: stripped of what concerns only
// the federated object, adapted and overridden for the cluster.
func (s Source) contentFor(t Target) (*unstructured.Unstructured, error) {
	content := make(map[string]any, len(s.Object.Object))
	for key, value := range s.Object.Object {
		if key != "metadata" && key != "status" {
			content[key] = withoutNulls(value)
		}
	}
	content["apiVersion"], content["kind"] = s.Kind.Resource.GroupVersion().String(), s.Kind.Kind
	for _, path := range s.Kind.Drop {
		unstructured.RemoveNestedField(content, path...)
	}
	if s.Kind.Given != nil {
		for _, path := range s.Kind.Given(s.Object) {
			unstructured.RemoveNestedField(content, path...)
		}
	}
	if s.Kind.Adapt != nil {
		s.Kind.Adapt(content, s, t)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetName(s.Object.GetName())
	u.SetNamespace(s.Object.GetNamespace())
	u.SetLabels(s.Object.GetLabels())
	u.SetAnnotations(passedOn(s.Object.GetAnnotations()))
	return s.applyOverrides(u, t)
}

// notForMembers returns the fields of a Service that are the federation's alone: the cluster IPs if the user did not set them, for each member has its
// own, and the class of the federation's own load balancers, for those of the members serve the copies.
func notForMembers(service *unstructured.Unstructured) (paths [][]string) {
	ip, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if (v1beta1.ServiceIPs{Annotations: service.GetAnnotations()}).Given(ip) {
		paths = append(paths, []string{"spec", "clusterIP"}, []string{"spec", "clusterIPs"})
	}
	if class, _, _ := unstructured.NestedString(service.Object, "spec", "loadBalancerClass"); class == v1beta1.LoadBalancerClassName {
		paths = append(paths, []string{"spec", "loadBalancerClass"})
	}
	return paths
}

// withoutNulls copies a JSON value without the nulls in its maps: they mean nothing.
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

// withMarks adds the labels by which we find our copies: federation and shard.
func withMarks(from map[string]string, federated *unstructured.Unstructured, federation string) map[string]string {
	out := maps.Clone(from)
	if out == nil {
		out = map[string]string{}
	}
	out[v1beta1.ManagedByLabel] = federation
	out[v1beta1.ShardLabel] = strconv.Itoa(v1beta1.Shard(federated.GetNamespace(), federated.GetName()))
	return out
}

// notPassedOn are annotations of the federated object that its copies do not get.
var notPassedOn = map[string]bool{
	"kubectl.kubernetes.io/last-applied-configuration": true,
	"deployment.kubernetes.io/revision":                true,
}

// forMembers are those of the federation's annotations that node agents of members read.
var forMembers = map[string]bool{v1beta1.FallbackAnnotation: true, v1beta1.FallbackBelowAnnotation: true, v1beta1.ClusterSetIPAnnotation: true}

// passedOn returns the annotations that a copy gets from its federated object. It leaves out a pending address.
func passedOn(from map[string]string) map[string]string {
	out := make(map[string]string, len(from)+1)
	for key, value := range from {
		ours := strings.HasPrefix(key, "federation.kubernetes.io/") || strings.HasPrefix(key, "federation.alpha.kubernetes.io/")
		waits := key == v1beta1.ClusterSetIPAnnotation && value == v1beta1.ClusterSetIPAuto
		if (!ours || forMembers[key] && !waits) && !notPassedOn[key] {
			out[key] = value
		}
	}
	return out
}

// hashOf hashes a JSON value. Equal values give equal hashes, because maps are marshalled in order.
func hashOf(value any) string {
	sum := sha256.Sum256(JSON(value))
	return hex.EncodeToString(sum[:8])
}
