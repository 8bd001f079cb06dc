package admission

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"federation/apiserver/admission/plan"
	"federation/apiserver/apis/federation/v1beta1"
)

// carryTrace writes the trace of a user's write on a federated object, if the write is sampled, so that controllers record what becomes of
// it; else it takes a former one off. What anybody else wrote there counts for nothing, on objects of all kinds: nobody adds to the trace of
// another, and a policy may make a custom kind federated later.
func carryTrace(ctx context.Context, a admission.Attributes, isFederated bool) {
	object, err := meta.Accessor(a.GetObject())
	if sub := a.GetSubresource(); err != nil || sub != "" && sub != "status" {
		return // scale and the like carry other objects
	}
	value := ""
	switch {
	case ofControllers(a) || a.GetSubresource() != "" || a.IsDryRun(): // who tries a write sees what is theirs
		value = annotationsOf(a.GetOldObject())[v1beta1.TraceAnnotation]
	case isFederated:
		value = traceOf(ctx)
	}
	if value != "" {
		plan.Annotate(object, v1beta1.TraceAnnotation, value)
	} else if _, written := object.GetAnnotations()[v1beta1.TraceAnnotation]; written {
		removeAnnotation(object, v1beta1.TraceAnnotation)
	}
}

// traceOf returns the trace of a request that is sampled, or "". Only a span that is being recorded counts: while tracing is off, that of a
// request is what its client says it is.
func traceOf(ctx context.Context) string {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() || !span.SpanContext().IsSampled() {
		return ""
	}
	return v1beta1.Trace{Trace: span.SpanContext().TraceID(), Span: span.SpanContext().SpanID(), Started: time.Now()}.String()
}

func removeAnnotation(object metav1.Object, key string) {
	annotations := map[string]string{}
	for k, v := range object.GetAnnotations() {
		if k != key {
			annotations[k] = v
		}
	}
	object.SetAnnotations(annotations)
}
