package crosscluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/controllers/crosscluster/plan"
)

// fieldManager owns the fields of slices.
const fieldManager = "federation"

// lackingRetry is the retry period of a Service in a member where we have no permission to write slices.
const lackingRetry = 5 * time.Minute

// sync makes the slices of one Service as desired.
func (m *member) sync(ctx context.Context, service string) error {
	in, ok := m.snapshot(service)
	if !ok {
		return nil
	}
	var errs []error
	for _, op := range plan.Operate(in) {
		err := m.execute(ctx, service, op)
		if apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			m.lacksRights(err)
			m.queue.AddAfter(service, lackingRetry)
			return nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%q: %w", op.Slice.Name, err))
		}
	}
	err := errors.Join(errs...)
	m.emitEvent(service, in.Service, err)
	return err
}

// execute carries out one operation.
func (m *member) execute(ctx context.Context, service string, op plan.Operation) (err error) {
	ctx, cancel := context.WithTimeout(ctx, m.WriteTimeout)
	defer cancel()
	defer func() { observeWrite(m.Name, op.Verb, err) }()
	slices := m.Client.Resource(endpointSlices).Namespace(op.Slice.Namespace)
	if op.Verb == plan.Delete {
		err = slices.Delete(ctx, op.Slice.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &op.Slice.UID}})
		if err == nil {
			m.written.recordWrite(service, op.Slice.Name, left{deleted: op.Slice.UID})
		}
		if apierrors.IsNotFound(err) {
			m.written.forget(service, op.Slice.Name)
			return nil // the garbage collector was faster
		}
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(op.Slice)
	if err != nil {
		return err
	}
	var got *unstructured.Unstructured
	if op.Verb == plan.Create {
		got, err = slices.Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		got, err = slices.Update(ctx, &unstructured.Unstructured{Object: content}, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if apierrors.IsNotFound(err) {
		m.written.forget(service, op.Slice.Name)
	}
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a foreign object has the name and is left alone: %w", err)
	}
	if err == nil {
		m.written.recordWrite(service, op.Slice.Name, left{slice: got})
	}
	return err
}
