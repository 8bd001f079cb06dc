package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/scheduler"
)

// AddObject adds an object with divided replicas. One that is being deleted, or whose annotations cannot be parsed, is
// not moved.
func (in *Input) AddObject(u *unstructured.Unstructured) {
	if o, err := scheduler.Read(u); err == nil && u.GetDeletionTimestamp() == nil {
		in.Objects = append(in.Objects, o)
	}
}

// AddNamed adds an object with names in DNS. One that cannot be parsed keeps its records.
func (in *Input) AddNamed(u *unstructured.Unstructured) {
	if o, err := servicednsplan.Read(u, in.policiesOf(u.GetNamespace())); err == nil {
		in.Named = append(in.Named, o)
	}
}

func (in *Input) policiesOf(namespace string) (some []*v1beta1.PlacementPolicy) {
	for _, p := range in.Policies {
		if p.Namespace == namespace {
			some = append(some, p)
		}
	}
	return some
}
