package v1beta1

import (
	"encoding/hex"
	"strings"
	"time"
)

// TraceAnnotation is on a federated object whose last write by a user is traced: TRACE-SPAN, in hexadecimal, and when it began. Only the
// API server writes it; what users write there counts for nothing.
const TraceAnnotation = "federation.kubernetes.io/trace"

// TraceLifetime is how long after a write its consequences are traced.
const TraceLifetime = 10 * time.Minute

// Trace is what TraceAnnotation holds.
//
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type Trace struct {
	Trace   [16]byte
	Span    [8]byte
	Started time.Time
}

func (t Trace) String() string {
	return hex.EncodeToString(t.Trace[:]) + "-" + hex.EncodeToString(t.Span[:]) + " " + t.Started.UTC().Format(time.RFC3339Nano)
}

// ParseTrace reads a TraceAnnotation, and whether it is one.
func ParseTrace(value string) (t Trace, ok bool) {
	ids, at, _ := strings.Cut(value, " ")
	trace, span, _ := strings.Cut(ids, "-")
	started, err := time.Parse(time.RFC3339Nano, at)
	if t.Started = started; err != nil || len(trace) != 2*len(t.Trace) || len(span) != 2*len(t.Span) {
		return Trace{}, false
	}
	if _, err := hex.Decode(t.Trace[:], []byte(trace)); err != nil {
		return Trace{}, false
	}
	if _, err := hex.Decode(t.Span[:], []byte(span)); err != nil {
		return Trace{}, false
	}
	return t, t.Trace != [16]byte{} && t.Span != [8]byte{}
}
