package mcs

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
	crossclusterplan "federation/controllers/crosscluster/plan"
	"federation/controllers/mcs/plan"
)

// fieldManager owns the fields of what is written.
const fieldManager = "federation-mcs"

// writer writes to one API. A cache that is behind costs a request that changes nothing: creates fail where the object is there,
// updates and deletes where it is another one or newer.
type writer struct {
	client              dynamic.Interface
	cluster, federation string
}

type named interface {
	runtime.Object
	metav1.Object
}

// ensure writes an object, if it differs from the one that is there, which may be nil.
func ensure[T named](ctx context.Context, w writer, r schema.GroupVersionResource, want, have T, isThere bool) error {
	if isThere && equality.Semantic.DeepEqual(want, have) {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return err
	}
	u, client := &unstructured.Unstructured{Object: content}, w.client.Resource(r).Namespace(want.GetNamespace())
	if isThere {
		_, err = client.Update(ctx, u, metav1.UpdateOptions{FieldManager: fieldManager})
		observeWrite(w.cluster, r.Resource, "update", err)
	} else {
		_, err = client.Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
		observeWrite(w.cluster, r.Resource, "create", err)
	}
	if apierrors.IsAlreadyExists(err) {
		is, problem := client.Get(ctx, want.GetName(), metav1.GetOptions{})
		if problem == nil && is.GetLabels()[v1beta1.ManagedByLabel] == w.federation {
			return nil // the cache has not seen it yet
		}
		return errors.Join(problem, fmt.Errorf("somebody else's %s %q is left alone: %w", r.Resource, want.GetName(), err))
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) && isThere {
		return nil // the cache is about to see what came in between
	}
	return err
}

// ensureStatus writes the status of an object that is there.
func ensureStatus[T named](ctx context.Context, w writer, r schema.GroupVersionResource, want T) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return err
	}
	_, err = w.client.Resource(r).Namespace(want.GetNamespace()).UpdateStatus(ctx, &unstructured.Unstructured{Object: content}, metav1.UpdateOptions{FieldManager: fieldManager})
	observeWrite(w.cluster, r.Resource, "status", err)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the cache is about to see what came in between
	}
	return err
}

// remove deletes an object, if it is still the same.
func remove(ctx context.Context, w writer, r schema.GroupVersionResource, o metav1.Object) error {
	uid := o.GetUID()
	err := w.client.Resource(r).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	observeWrite(w.cluster, r.Resource, "delete", err)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// ensureImport writes a ServiceImport, then its status.
func ensureImport(ctx context.Context, w writer, want, have *mcsv1beta1.ServiceImport) error {
	if have == nil {
		return ensure(ctx, w, serviceImports, want, have, false) // the rest follows when the cache has it
	}
	spec := want.DeepCopy()
	spec.Status = have.Status
	if !equality.Semantic.DeepEqual(spec, have) {
		return ensure(ctx, w, serviceImports, spec, have, true)
	}
	if equality.Semantic.DeepEqual(want.Status, have.Status) {
		return nil
	}
	stamp(want.Status.Conditions)
	return ensureStatus(ctx, w, serviceImports, want)
}

// ensureConditions writes conditions of a ServiceExport.
func ensureConditions(ctx context.Context, w writer, of *mcsv1beta1.ServiceExport, conditions []metav1.Condition) error {
	want := of.DeepCopy()
	plan.SetConditions(&want.Status.Conditions, conditions...)
	if equality.Semantic.DeepEqual(want.Status, of.Status) {
		return nil
	}
	stamp(want.Status.Conditions)
	return ensureStatus(ctx, w, serviceExports, want)
}

// stamp gives conditions that have changed the time.
func stamp(conditions []metav1.Condition) {
	for i := range conditions {
		if conditions[i].LastTransitionTime.IsZero() {
			conditions[i].LastTransitionTime = metav1.Now()
		}
	}
}

// lackingRights reports whether a member does not let us write: its fence, or its rights.
func lackingRights(err error) bool {
	return apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// sync makes what the member has of one Service as it should be.
func (m *member) sync(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, m.WriteTimeout)
	defer cancel()
	w := writer{m.Client, m.Name, m.Federation}
	err := m.ensureCopy(ctx, w, key)
	in := m.input(key)
	d := plan.Decide(in)
	if e := ownExport(in); e != nil {
		err = errors.Join(err, ensureConditions(ctx, w, e, d.Conditions))
	}
	err = errors.Join(err, carryOut(ctx, w, in.Have, d))
	m.tell(key, err)
	return err
}

// ownExport returns the member's export.
func ownExport(in plan.Input) *mcsv1beta1.ServiceExport {
	for i := range in.Sources {
		if s := &in.Sources[i]; s.Cluster == in.Member && s.Export != nil {
			return s.Export.Export
		}
	}
	return nil
}

// ensureCopy makes the member's copy of the federation's export as it should be.
func (m *member) ensureCopy(ctx context.Context, w writer, key string) error {
	copied := object(m.copies, key)
	have := read[mcsv1beta1.ServiceExport](object(m.exports, key))
	want, gone := plan.Copy(m.Federation, read[mcsv1beta1.ServiceExport](object(m.Controller.exports, key)), have,
		copied != nil && copied.GetDeletionTimestamp() == nil && v1beta1.IsCopy(copied, schema.GroupKind{Kind: "Service"}, m.Federation))
	switch {
	case gone != nil:
		return remove(ctx, w, serviceExports, gone)
	case want != nil:
		return ensure(ctx, w, serviceExports, want, have, have != nil)
	}
	return nil
}

// carryOut writes what differs. New things come before old ones go.
func carryOut(ctx context.Context, w writer, have plan.Have, d plan.Decision) error {
	var errs []error
	if d.Import != nil {
		errs = append(errs, ensureImport(ctx, w, d.Import, have.Import))
	}
	if d.Derived != nil {
		errs = append(errs, ensure(ctx, w, services, d.Derived, have.Derived, have.Derived != nil))
	}
	for _, op := range crossclusterplan.Compare(d.Slices, have.Slices, d.Keep) {
		switch op.Verb {
		case crossclusterplan.Create:
			errs = append(errs, ensure(ctx, w, endpointSlices, op.Slice, nil, false))
		case crossclusterplan.Update:
			errs = append(errs, ensure(ctx, w, endpointSlices, op.Slice, &discoveryv1.EndpointSlice{}, true))
		case crossclusterplan.Delete:
			errs = append(errs, remove(ctx, w, endpointSlices, op.Slice))
		}
	}
	switch {
	case d.Balancer != nil:
		errs = append(errs, ensure(ctx, w, services, d.Balancer, have.Balancer, have.Balancer != nil))
	case have.Balancer != nil:
		errs = append(errs, remove(ctx, w, services, have.Balancer))
	}
	if d.Derived == nil && have.Derived != nil && (d.Import == nil || d.Import.Spec.Type == mcsv1beta1.Headless) {
		errs = append(errs, remove(ctx, w, services, have.Derived))
	}
	if d.Import == nil && have.Import != nil {
		errs = append(errs, remove(ctx, w, serviceImports, have.Import))
	}
	return errors.Join(errs...)
}

// tell emits an event about a Cluster into which a Service is not imported, once until it is.
func (m *member) tell(key string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rejected := err != nil && (lackingRights(err) || apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err))
	if err == nil {
		delete(m.told, key)
	}
	if !rejected || m.told[key] {
		return
	}
	m.told[key] = true
	cluster := &v1beta1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"}, ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	m.Recorder.Eventf(cluster, corev1.EventTypeWarning, v1beta1.EventServiceNotImported, "%s: %s", key, v1beta1.Printable(err.Error()))
}

// summarize makes the federation's own ServiceImport as it should be, and reports to its ServiceExport.
func (c *Controller) summarize(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
	defer cancel()
	u := object(c.imports, key)
	have := read[mcsv1beta1.ServiceImport](u)
	if have != nil && have.Labels[v1beta1.ManagedByLabel] != c.Federation {
		have = nil // somebody else's is left alone
	}
	namespace, name, _ := cache.SplitMetaNamespaceKey(key) // which we made
	w := writer{c.Client, "", c.Federation}
	want, conditions := plan.Summary(c.Federation, namespace, name, c.sources(key), have)
	var errs []error
	switch ns := object(c.namespaces, namespace); {
	case want != nil && (u == nil || have != nil) && ns != nil && ns.GetDeletionTimestamp() == nil:
		errs = append(errs, ensureImport(ctx, w, want, have))
	case want == nil && have != nil:
		errs = append(errs, remove(ctx, w, serviceImports, have))
	}
	if export := read[mcsv1beta1.ServiceExport](object(c.exports, key)); export != nil && export.DeletionTimestamp == nil {
		errs = append(errs, ensureConditions(ctx, w, export, plan.FederationConditions(conditions)))
	}
	return errors.Join(errs...)
}
