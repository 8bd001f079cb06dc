package propagation

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// acceptedFor and refusedFor are how long a member's answer about a namespace counts.
const (
	acceptedFor = time.Minute
	refusedFor  = 10 * time.Second
)

// accepted remembers what a member said of its namespaces: many objects ask for the same.
type accepted struct {
	mu sync.Mutex
	of map[string]acceptance
}

type acceptance struct {
	by time.Time
	is bool
}

// mayEnter returns an error, as the member's fence does, where an object should be created in a namespace that the member had before and that does not accept the
// federation's objects (ADR 141). A member without fences would take it. The federation's own namespaces are known from the cache, others are asked for.
func (d *dispatcher) mayEnter(ctx context.Context, m *member, k key) error {
	ns, _ := d.namespaceOf(k)
	if ns.Kind == nil {
		return nil
	}
	if have, _ := m.Observe(ns); have != nil {
		return nil
	}
	is, err := m.accepts(ctx, k.Namespace, d.Federation)
	if err == nil && !is {
		err = apierrors.NewForbidden(k.Kind.Resource.GroupResource(), k.Name, fmt.Errorf("the namespace %s was there before the federation: to let it put objects into it, label it %s=%s",
			k.Namespace, v1beta1.AcceptLabel, d.Federation))
	}
	return err
}

// accepts asks the member. Where there is no such namespace, or it may not be read, the write itself shows what the member says.
func (m *member) accepts(ctx context.Context, namespace, federation string) (bool, error) {
	m.accepted.mu.Lock()
	last, known := m.accepted.of[namespace]
	m.accepted.mu.Unlock()
	if known && time.Now().Before(last.by) {
		return last.is, nil
	}
	got, err := m.Client.Resource(namespaces).Get(ctx, namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	now := acceptance{time.Now().Add(refusedFor), v1beta1.NamespaceOf(got, federation)}
	if now.is {
		now.by = time.Now().Add(acceptedFor)
	}
	m.accepted.put(namespace, now)
	return now.is, nil
}

func (a *accepted) put(namespace string, now acceptance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.of, func(_ string, had acceptance) bool { return time.Now().After(had.by) })
	if a.of == nil {
		a.of = map[string]acceptance{}
	}
	a.of[namespace] = now
}
