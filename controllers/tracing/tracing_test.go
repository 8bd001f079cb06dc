package tracing

import (
	"errors"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestRecord: a span is a child of the write that the annotation names, begins no sooner, and what a member says in it is bounded; without a
// trace, with one that is over, and with what is no trace, none is recorded.
func TestRecord(t *testing.T) {
	now := time.Now()
	live := v1beta1.Trace{Trace: [16]byte{1}, Span: [8]byte{2}, Started: now.Add(-time.Minute)}
	for name, c := range map[string]struct {
		value string
		want  bool
	}{
		"live":           {live.String(), true},
		"over":           {v1beta1.Trace{Trace: live.Trace, Span: live.Span, Started: now.Add(-time.Hour)}.String(), false},
		"of the future":  {v1beta1.Trace{Trace: live.Trace, Span: live.Span, Started: now.Add(time.Hour)}.String(), false},
		"without a span": {v1beta1.Trace{Trace: live.Trace, Started: now}.String(), false},
		"no trace":       {"x", false},
		"empty":          {"", false},
	} {
		recorder := tracetest.NewSpanRecorder()
		s := New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample()))))
		s.Record(map[string]string{v1beta1.TraceAnnotation: c.value}, Span{
			Name: "Write to member", Started: now.Add(-time.Hour), Err: errors.New(strings.Repeat("x", 1<<20) + "\x1b[0m"), About: []string{"cluster", "east-a"},
		})
		ended := recorder.Ended()
		if got := len(ended) == 1; got != c.want {
			t.Errorf("%s: recorded: %t, want %t", name, got, c.want)
			continue
		}
		for _, span := range ended {
			said := span.Status().Description
			if span.SpanContext().TraceID() != live.Trace || span.Parent().SpanID() != live.Span || span.StartTime().Before(live.Started.Add(-time.Microsecond)) || len(said) > 10000 || strings.Contains(said, "\x1b") {
				t.Errorf("%s: %+v, parent %v, from %s, %d bytes of an error", name, span.SpanContext(), span.Parent(), span.StartTime(), len(said))
			}
		}
	}
	var none *Spans
	none.Record(map[string]string{v1beta1.TraceAnnotation: live.String()}, Span{Name: "x"})
}
