package fleettest

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// What people do in a member with objects that are there, by the word of `member CLUSTER WORD KIND/NAME [KIND/NAME]`.
var inMember = map[string]func(p *player, m *Member, client dynamic.Interface, t target, args []string) error{
	// save, restore: the object is in a backup of the member; the backup is restored.
	"save": func(p *player, m *Member, _ dynamic.Interface, t target, _ []string) error {
		u := m.API.Get(t.GroupVersionResource, t.namespace, t.name)
		if u == nil {
			return fmt.Errorf("%s has no %s %s", m.Name, t.Kind, t.name)
		}
		if p.saved == nil {
			p.saved = map[string]*unstructured.Unstructured{}
		}
		p.saved[m.Name+" "+t.String()] = u.DeepCopy()
		return nil
	},
	"restore": func(p *player, m *Member, client dynamic.Interface, t target, _ []string) error {
		u := p.saved[m.Name+" "+t.String()]
		if u == nil {
			return fmt.Errorf("nothing was saved of %s %s in %s", t.Kind, t.name, m.Name)
		}
		return bring(p, client, t, withoutIdentity(u))
	},
}

// String is how scripts name a target.
func (t target) String() string {
	return strings.ToLower(t.Kind) + "/" + t.namespace + "/" + t.name
}

// bring makes an object in a member what it is to be, whether it is there or not.
func bring(p *player, client dynamic.Interface, t target, u *unstructured.Unstructured) error {
	r := at(client, t.Resource, t.namespace)
	_, err := r.Update(p.ctx, u, metav1.UpdateOptions{})
	if errors.IsNotFound(err) {
		_, err = r.Create(p.ctx, u, metav1.CreateOptions{})
	}
	return err
}

// withoutIdentity is an object as `kubectl get -o yaml` shows it, without what an API server gave it.
func withoutIdentity(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(u.DeepCopy().Object)}
	delete(out.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	return out
}
