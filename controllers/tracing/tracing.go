// Package tracing records what becomes of a write at the federation, as spans of the trace of that write (ADR 182).
package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"federation/apiserver/apis/federation/v1beta1"
)

// Spans records spans. Nil records none.
type Spans struct{ tracer trace.Tracer }

// New returns what records spans by a provider.
func New(provider trace.TracerProvider) *Spans {
	return &Spans{provider.Tracer("federation/controllers")}
}

// Span is something that was done for an object.
type Span struct {
	Name    string
	Started time.Time
	// About are its attributes, in pairs of a key and a value.
	About []string
	Err   error
}

// Record records a span that ends now, of the trace that an object's annotations name. It does nothing for an object that is not traced,
// or no longer. Nothing is handed on to where it was done: members see nothing of traces.
func (s *Spans) Record(annotations map[string]string, span Span) {
	if s == nil {
		return
	}
	value, traced := annotations[v1beta1.TraceAnnotation]
	if !traced {
		return
	}
	of, ok := v1beta1.ParseTrace(value)
	if age := time.Since(of.Started); !ok || age > v1beta1.TraceLifetime || age < -time.Minute { // from a clock that is ahead
		return
	}
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: of.Trace, SpanID: of.Span, TraceFlags: trace.FlagsSampled, Remote: true})
	if span.Started.Before(of.Started) {
		span.Started = of.Started
	}
	_, out := s.tracer.Start(trace.ContextWithSpanContext(context.Background(), parent), span.Name, trace.WithTimestamp(span.Started))
	for i := 0; i+1 < len(span.About); i += 2 {
		out.SetAttributes(attribute.String(span.About[i], v1beta1.Printable(span.About[i+1])))
	}
	if span.Err != nil {
		out.SetStatus(codes.Error, v1beta1.Printable(span.Err.Error()))
	}
	out.End()
}
