package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"

	"federation/apiserver/apis/federation/v1beta1"
)

// MaxHistory bounds how many revisions beside the newest are kept, whatever spec.revisionHistoryLimit says: each is a whole template.
const MaxHistory = 100

// maxNumber bounds the numbers of revisions that are believed: people can write them.
const maxNumber = 1 << 52

// Workload is what revisions are kept of: a Deployment, StatefulSet or DaemonSet.
type Workload struct {
	Kind, Name string
	// Template is spec.template.
	Template map[string]any
	// Annotations are all of the workload's.
	Annotations map[string]string
	// HistoryLimit is spec.revisionHistoryLimit.
	HistoryLimit int64
	// Paused: a new template is no revision yet.
	Paused bool
	// Pods are a Deployment's; those of others are not told apart by revision.
	Pods Pods
}

// Pods are how many of a Deployment's there are in all clusters.
type Pods struct{ Wanted, Total, Updated, Ready, Available int64 }

// Revision is a ReplicaSet or ControllerRevision.
type Revision struct {
	Name string
	// Template is HashOf its template.
	Template string
	// Number is 1 for the first; 0 where it is not known.
	Number int64
	// Annotations are those that it has of its workload.
	Annotations map[string]string
	// Replicas is spec.replicas of a ReplicaSet.
	Replicas int64
	Status   Status
}

// Status is that of a ReplicaSet.
type Status struct{ Replicas, Ready, Available int64 }

// Decide returns the revisions that there are to be, and the name of that of the workload's template, "" where it has none: a template
// that was changed while the workload is paused. have are those that there are, in any order.
func Decide(w Workload, have []Revision) (want []Revision, current string) {
	newest, old := split(w, have)
	if len(old) > 0 {
		newest.Number = max(newest.Number, old[0].Number+1)
	}
	newest.Number = max(newest.Number, 1)
	newest.Annotations, newest.Replicas, newest.Status = passedOn(w.Annotations), w.Pods.Wanted, w.Pods.newest()
	if len(old) < len(have) || len(old) == 0 || !w.Paused {
		want, current = []Revision{newest}, newest.Name
	}
	limit := int(min(max(w.HistoryLimit, 0), MaxHistory)) + 1 - len(want)
	for i, r := range old[:min(len(old), limit)] {
		r.Annotations, r.Replicas, r.Status = placedAs(newest.Annotations, r.Annotations), 0, Status{}
		switch {
		case i == 0 && current == "":
			r.Replicas, r.Status = w.Pods.Wanted, w.Pods.all()
		case i == 0:
			r.Status = w.Pods.before()
		}
		want = append(want, r)
	}
	return want, current
}

// split returns the revision of the workload's template, which may have no number yet, and the others, the latest first.
func split(w Workload, have []Revision) (newest Revision, old []Revision) {
	hash := HashOf(w.Kind, w.Template)
	newest = Revision{Name: nameOf(w.Name, hash), Template: hash}
	old = slices.Clone(have)
	for i, r := range old {
		if r.Number < 0 || r.Number > maxNumber {
			old[i].Number = 0
		}
	}
	slices.SortFunc(old, func(a, b Revision) int {
		return cmp.Or(-cmp.Compare(a.Number, b.Number), strings.Compare(a.Name, b.Name))
	})
	for _, is := range []func(Revision) bool{
		func(r Revision) bool { return r.Template == hash },
		func(r Revision) bool { return r.Name == newest.Name }, // somebody has changed it since
	} {
		if i := slices.IndexFunc(old, is); i >= 0 {
			newest = old[i]
			return newest, slices.Delete(old, i, i+1)
		}
	}
	return newest, old
}

// newest is what surely has the newest template: members say how many are ready of all, and how many are updated. Those that are not
// are taken to be ready.
func (p Pods) newest() Status {
	updated := min(max(p.Updated, 0), max(p.Total, 0))
	left := p.Total - updated
	ready := min(max(p.Ready-left, 0), updated)
	return Status{updated, ready, min(max(p.Available-left, 0), ready)}
}

func (p Pods) all() Status {
	total := max(p.Total, 0)
	ready := min(max(p.Ready, 0), total)
	return Status{total, ready, min(max(p.Available, 0), ready)}
}

// before is what is left of the revisions before, which is taken to be of the last of them.
func (p Pods) before() Status {
	all, newest := p.all(), p.newest()
	ready := all.Ready - newest.Ready
	return Status{all.Replicas - newest.Replicas, ready, min(max(all.Available-newest.Available, 0), ready)}
}

// nameOf is the name of a new revision: the workload's, as far as there is room, and the hash of the template.
func nameOf(workload, hash string) string {
	longest := 253 - 1 - len(hash)
	return strings.TrimRight(workload[:min(len(workload), longest)], "-.") + "-" + hash
}

// HashOf identifies a template of a kind of workloads, in letters that labels and names may have: a StatefulSet and a DaemonSet may be alike in
// name and template. The label that a ReplicaSet's has in addition does not count.
func HashOf(kind string, template map[string]any) string {
	template = WithoutNulls(template)
	if labels, ok, _ := unstructured.NestedMap(template, "metadata", "labels"); ok {
		delete(labels, appsv1.DefaultDeploymentUniqueLabelKey)
		template["metadata"].(map[string]any)["labels"] = labels
	}
	text, err := json.Marshal(template)
	if err != nil {
		panic(err) // it was JSON before
	}
	sum := sha256.Sum256(append([]byte(kind), text...))
	return rand.SafeEncodeString(hex.EncodeToString(sum[:6]))
}

// WithoutNulls copies a JSON object, without the nulls in it: clients and servers differ in whether they write them.
func WithoutNulls(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for key, value := range object {
		if value != nil {
			out[key] = withoutNulls(value)
		}
	}
	return out
}

func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return WithoutNulls(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = withoutNulls(item)
		}
		return out
	}
	return value
}

// RevisionAnnotation has the number of a Deployment's revision, on this and on its ReplicaSet.
const RevisionAnnotation = "deployment.kubernetes.io/revision"

// HashAnnotation has, in our memory only, HashOf a revision's template, which is not held.
const HashAnnotation = "federation.kubernetes.io/template-hash"

// notPassedOn are annotations of a workload that its revisions do not have.
var notPassedOn = append([]string{RevisionAnnotation, HashAnnotation, "kubectl.kubernetes.io/last-applied-configuration", appsv1.DeprecatedRollbackTo, v1beta1.TraceAnnotation}, v1beta1.DecidedAnnotations...)

// passedOn are the annotations that a revision has of its workload: `kubectl rollout undo` gives them back to it, and takes off all others.
func passedOn(from map[string]string) map[string]string {
	out := maps.Clone(from)
	maps.DeleteFunc(out, func(key, _ string) bool { return slices.Contains(notPassedOn, key) })
	return out
}

// placedAs are the annotations of an old revision, but those of the federation as the workload has them now: where pods go is no part of a
// revision, and `kubectl rollout undo` is not to move them.
func placedAs(now, then map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, passedOn(then))
	maps.DeleteFunc(out, func(key, _ string) bool { return ofFederation(key) })
	for key, value := range now {
		if ofFederation(key) {
			out[key] = value
		}
	}
	return out
}

func ofFederation(key string) bool {
	return strings.HasPrefix(key, "federation.kubernetes.io/") || strings.HasPrefix(key, "federation.alpha.kubernetes.io/")
}
