package fleettest

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"federation/controllers/fleettest/memapi"
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
	// expose NAME: as kubectl expose, which gives the new Service the labels of what it exposes.
	"expose": func(p *player, m *Member, client dynamic.Interface, t target, args []string) error {
		u := m.API.Get(t.GroupVersionResource, t.namespace, t.name)
		if err := need(args, 1, "member CLUSTER expose KIND/NAME NAME"); err != nil || u == nil {
			return err
		}
		service, err := p.target("svc/" + t.namespace + "/" + args[0])
		if err != nil {
			return err
		}
		made := empty(service.Resource)
		made.SetLabels(u.GetLabels())
		made.Object["spec"] = map[string]any{"selector": map[string]any{"app": t.name}, "ports": []any{map[string]any{"port": int64(80)}}}
		return makeAs(p, m, client, service, made)
	},
	// clone KIND/NAME: as kubectl get -o yaml, another name, kubectl apply.
	"clone": func(p *player, m *Member, client dynamic.Interface, t target, args []string) error {
		u := m.API.Get(t.GroupVersionResource, t.namespace, t.name)
		if err := need(args, 1, "member CLUSTER clone KIND/NAME KIND/NAME"); err != nil || u == nil {
			return err
		}
		to, err := p.target(args[0])
		if err != nil {
			return err
		}
		return makeAs(p, m, client, to, withoutIdentity(u))
	},
}

// makeAs makes an object under the name of a target, unless there is one.
func makeAs(p *player, m *Member, client dynamic.Interface, t target, u *unstructured.Unstructured) error {
	u.SetGroupVersionKind(t.GroupVersion().WithKind(t.Kind))
	u.SetName(t.name)
	u.SetNamespace(t.namespace)
	_, err := at(client, t.Resource, t.namespace).Create(p.ctx, u, metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	}
	p.laws.foreign.made(p.Fleet, m, t)
	return err
}

// applyInMember has somebody apply a file in a member.
func applyInMember(p *player, m *Member, client dynamic.Interface, file string) error {
	if err := p.applyTo(m.API, client, file); err != nil {
		return err
	}
	all, err := p.objects(file)
	for _, u := range all {
		if r, found := resourceOf(m.API, u.GroupVersionKind()); found {
			namespace := u.GetNamespace()
			if r.Namespaced && namespace == "" {
				namespace = metav1.NamespaceDefault
			}
			p.laws.foreign.made(p.Fleet, m, target{Resource: r, namespace: namespace, name: u.GetName()})
		}
	}
	return err
}

func empty(r memapi.Resource) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(r.GroupVersion().WithKind(r.Kind))
	return u
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

// hasTheName ends the line of a write that was refused as a foreign object has the name. Whether it still does is asked from time
// to time.
const hasTheName = " (a foreign object has the name)"

// isForeign reports whether a foreign object is in the place that a request to a member is about. It is called with the fleet locked.
func isForeign(f *Fleet, member string, r memapi.Request) bool {
	m := f.members[member]
	if m == nil {
		return false
	}
	there := m.API.Get(r.Resource, r.Namespace, r.Name)
	return there != nil && !f.isCopy(there)
}
