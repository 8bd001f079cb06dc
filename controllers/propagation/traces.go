package propagation

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/propagation/plan"
	"federation/controllers/tracing"
)

func spanAbout(k key) []string {
	return []string{"kind", k.Kind.Kind, "namespace", k.Namespace, "name", k.Name}
}

// seenReady remembers of traced objects in which clusters they were seen ready, so that each is recorded once.
type seenReady struct {
	mu sync.Mutex
	of map[key]*readyIn
}

type readyIn struct {
	trace    string
	clusters map[string]bool
}

// first reports whether an object was not seen ready in a cluster before, since the write that a trace is of.
func (r *seenReady) first(k key, trace, cluster string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[key]*readyIn{}
	}
	if r.of[k] == nil || r.of[k].trace != trace {
		r.of[k] = &readyIn{trace, map[string]bool{}}
	}
	seen := r.of[k].clusters[cluster]
	r.of[k].clusters[cluster] = true
	return !seen
}

func (r *seenReady) forget(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, k)
}

// traceReady records that a traced object is ready in a cluster, from its write at the federation on.
func (r *reporter) traceReady(k key, federated *unstructured.Unstructured, copies []plan.Copy) {
	annotations := federated.GetAnnotations()
	of, traced := v1beta1.ParseTrace(annotations[v1beta1.TraceAnnotation])
	if r.Spans == nil || !traced || time.Since(of.Started) > v1beta1.TraceLifetime {
		r.ready.forget(k)
		return
	}
	for _, c := range copies {
		if plan.IsReadyCopy(k.Kind, federated, c) && r.ready.first(k, annotations[v1beta1.TraceAnnotation], c.Cluster) {
			r.Spans.Record(annotations, tracing.Span{Name: "Ready in member", Started: of.Started, About: append(spanAbout(k), "cluster", c.Cluster)})
		}
	}
}
