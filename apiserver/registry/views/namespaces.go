package views

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	errNotOurs   = errors.New("the namespace was there before the federation and does not accept its objects, so its pods are not shown")
	errNotReady  = errors.New("the federation's own namespaces have not been read yet")
	errProtected = errors.New("what is in namespaces that each cluster keeps for itself is not shown")
)

// namespaces decides whose pods are shown: those of namespaces that the federation has, and that in the member are its
// own, too.
type namespaces struct {
	federation corelisters.NamespaceLister
}

// has reports whether the federation has a namespace that it shares with members.
func (n namespaces) has(name string) bool {
	if v1beta1.OwnNamespace(name) {
		return false
	}
	_, err := n.federation.Get(name)
	return err == nil
}

// uid returns the federation's.
func (n namespaces) uid() (string, error) {
	ns, err := n.federation.Get(metav1.NamespaceSystem)
	if err != nil {
		return "", errNotReady
	}
	return string(ns.UID), nil
}

// inMember returns which namespaces of a member are the federation's: one, or with "" all.
func (n namespaces) inMember(ctx context.Context, l *link, namespace string) (map[string]bool, error) {
	uid, err := n.uid()
	if err != nil {
		return nil, err
	}
	ours := map[string]bool{}
	if namespace != "" {
		ns := &corev1.Namespace{}
		err := get(l.core, "namespaces", "").Name(namespace).Param("resourceVersion", "0").Do(ctx).Into(ns)
		switch {
		case apierrors.IsNotFound(err):
			return ours, nil
		case err != nil:
			return nil, err
		case !v1beta1.NamespaceOf(ns, uid):
			return nil, errNotOurs
		}
		ours[namespace] = n.has(namespace)
		return ours, nil
	}
	all := &corev1.NamespaceList{}
	if err := get(l.core, "namespaces", "").Param("resourceVersion", "0").Do(ctx).Into(all); err != nil {
		return nil, err
	}
	for i := range all.Items {
		if ns := &all.Items[i]; v1beta1.NamespaceOf(ns, uid) && n.has(ns.Name) {
			ours[ns.Name] = true
		}
	}
	return ours, nil
}

// get begins a request to a member without retries: a member that makes us wait and ask again counts as one that does
// not answer.
func get(client rest.Interface, resource, namespace string) *rest.Request {
	return client.Get().MaxRetries(0).NamespaceIfScoped(namespace, namespace != "").Resource(resource)
}
