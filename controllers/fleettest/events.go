package fleettest

import (
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// events is a record.EventRecorder that keeps what it is told.
type events struct {
	mu   sync.Mutex
	list []event
}

type event struct{ object, kind, reason, message string }

// Event implements record.EventRecorder.
func (e *events) Event(object runtime.Object, kind, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := fmt.Sprintf("%T", object)
	if ref, ok := object.(*corev1.ObjectReference); ok {
		name = strings.ToLower(ref.Kind) + "/" + ref.Name
	} else if o, err := meta.Accessor(object); err == nil {
		name = strings.ToLower(object.GetObjectKind().GroupVersionKind().Kind) + "/" + o.GetName()
	}
	e.list = append(e.list, event{name, kind, reason, message})
}

// Eventf implements record.EventRecorder.
func (e *events) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	e.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (e *events) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	e.Eventf(object, kind, reason, format, args...)
}

// since returns the events from the n-th on.
func (e *events) since(n int) []event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]event(nil), e.list[min(n, len(e.list)):]...)
}

// forget drops the events so far.
func (e *events) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = nil
}
