package export

import (
	"testing"
	"time"

	tracingapi "k8s.io/component-base/tracing/api/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/tracing"
)

// TestNoReceiverHoldsUpNobody: neither what records spans nor the end of the process waits for whom they are sent to.
func TestNoReceiverHoldsUpNobody(t *testing.T) {
	spans, end, err := Start(t.Context(), &tracingapi.TracingConfiguration{Endpoint: new("127.0.0.1:1"), SamplingRatePerMillion: new(int32(1000000))}, "fed-1")
	if err != nil || spans == nil {
		t.Fatalf("%v, %v", spans, err)
	}
	begun := time.Now()
	of := v1beta1.Trace{Trace: [16]byte{1}, Span: [8]byte{2}, Started: begun}
	for range 10_000 { // more than are kept to be sent
		spans.Record(map[string]string{v1beta1.TraceAnnotation: of.String()}, tracing.Span{Name: "written", Started: begun})
	}
	end()
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
}

// TestNoConfigurationRecordsNothing: what is nil records nothing.
func TestNoConfigurationRecordsNothing(t *testing.T) {
	spans, end, err := Start(t.Context(), nil, "fed-1")
	if spans != nil || err != nil {
		t.Errorf("%v, %v", spans, err)
	}
	end()
}
