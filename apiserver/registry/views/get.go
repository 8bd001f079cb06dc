package views

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
)

// Get returns one object: NAME.CLUSTER, or NAME if only one cluster has one of that name.
func (r *REST) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	o, err := r.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return o.object, nil
}

// found is an object and its cluster.
type found struct {
	object
	cluster    *v1beta1.Cluster
	namespace  string
	nameInside string // in the member
}

// find looks for an object in the cluster of its name, or everywhere.
func (r *REST) find(ctx context.Context, name string) (found, error) {
	namespace := r.namespace(ctx)
	if r.kind.namespaced && !r.namespaces.has(namespace) {
		return found{}, r.notFound(name)
	}
	clusters := r.members.all()
	bare, cluster := splitName(name, namesOf(clusters))
	if cluster != "" {
		clusters = onlyNamed(clusters, cluster)
	}
	answers := askAll(ctx, r.members, clusters, func(ctx context.Context, l *link) (object, error) { return r.getAt(ctx, l, namespace, bare) })
	var all []found
	for i, a := range answers {
		switch {
		case a.err == nil:
			all = append(all, found{a.value, clusters[i], namespace, bare})
		case errors.IsNotFound(a.err):
			answers[i].err = nil
		case cluster != "":
			return found{}, errors.NewServiceUnavailable(fmt.Sprintf("cluster %s: %s", cluster, shortReason(a.err)))
		}
	}
	warnClient(ctx, answers)
	switch len(all) {
	case 0:
		return found{}, r.notFound(name)
	case 1:
		owners := r.owners.lookup()
		if !r.kind.show(ctx, all[0].object, all[0].cluster.Name, owners) {
			return found{}, r.notFound(name)
		}
		return all[0], nil
	}
	candidates := make([]string, len(all))
	for i, f := range all {
		candidates[i] = nameAt(bare, f.cluster.Name)
	}
	return found{}, errors.NewBadRequest(fmt.Sprintf("%s %q is in %d clusters: name one of %s", r.kind.singular, name, len(all), strings.Join(candidates, ", ")))
}

// getAt asks one member for one object.
func (r *REST) getAt(ctx context.Context, l *link, namespace, name string) (object, error) {
	if r.kind.namespaced {
		if ours, err := r.namespaces.inMember(ctx, l, namespace); err != nil {
			return nil, err
		} else if !ours[namespace] {
			return nil, r.notFound(name)
		}
	}
	o := r.kind.make()
	err := get(l.clientOfKind(r.kind), r.kind.resource.Resource, namespace).Name(name).Do(ctx).Into(o)
	if err == nil && (o.GetName() != name || o.GetNamespace() != namespace) {
		return nil, fmt.Errorf("it sends another %s than %q", r.kind.singular, name)
	}
	return o, err
}

func namesOf(clusters []*v1beta1.Cluster) map[string]bool {
	names := make(map[string]bool, len(clusters))
	for _, c := range clusters {
		names[c.Name] = true
	}
	return names
}

func onlyNamed(clusters []*v1beta1.Cluster, name string) []*v1beta1.Cluster {
	for _, c := range clusters {
		if c.Name == name {
			return []*v1beta1.Cluster{c}
		}
	}
	return nil
}
