package crosscluster

import (
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// tellAgain is the period at which an event is repeated: shorter than the API server keeps events.
	tellAgain = 30 * time.Minute
	// certain is how long a write must have been refused before an event reports it: a stale cache has caught up by
	// then. The number of tries says nothing, because each change of a Service adds one.
	certain = 10 * time.Second
)

// eventTimes is when to repeat the event of a problem. The zero value is ready to use.
type eventTimes struct {
	mu   sync.Mutex
	next map[string]time.Time
}

// isDue reports whether it is time for an event of a problem that has lasted for amiss, and records that it was sent.
func (t *eventTimes) isDue(what string, amiss time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == nil {
		t.next = map[string]time.Time{}
	}
	now := time.Now()
	if _, known := t.next[what]; !known {
		t.next[what] = now.Add(amiss)
	}
	if now.Before(t.next[what]) {
		return false
	}
	t.next[what] = now.Add(tellAgain)
	return true
}

func (t *eventTimes) forget(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.next, what)
}

// lacksRights emits an event about missing permissions.
func (m *member) lacksRights(err error) {
	if !m.told.isDue("rights", 0) {
		return
	}
	cluster := &v1beta1.Cluster{TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"}, ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	m.Recorder.Eventf(cluster, corev1.EventTypeWarning, v1beta1.EventMissingPermissions,
		"the nodes here do not learn of other clusters: %s; join the cluster again (kubectl federation join) to give the federation the permissions", v1beta1.Printable(err.Error()))
}

// emitEvent emits an event about refused writes for a Service that retries will not mend. in is the copy there. The message
// is CLUSTER: "SLICE": why; "SLICE": why.
func (m *member) emitEvent(service string, in *corev1.Service, err error) {
	switch {
	case err == nil:
		m.told.forget(service)
	case in != nil && isRejected(err) && m.told.isDue(service, certain):
		federated := &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: in.Namespace, Name: in.Name, UID: types.UID(in.Annotations[v1beta1.SourceAnnotation]),
		}}
		m.Recorder.Eventf(federated, corev1.EventTypeWarning, v1beta1.EventSliceRejected, "%s: %s", m.Name, v1beta1.Printable(strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
}

func isRejected(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}
