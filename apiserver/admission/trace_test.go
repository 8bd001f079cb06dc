package admission

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/pkg/apis/apps"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// TestTheTraceIsTheServers: whatever a user writes, an object has the trace of a sampled request and no other; what controllers and reports
// write leaves it; and a request whose client calls it sampled, without this server recording it, is not.
func TestTheTraceIsTheServers(t *testing.T) {
	const forged, before = "0123456789abcdef0123456789abcdef-0123456789abcdef 2026-01-01T00:00:00Z", "fedcba9876543210fedcba9876543210-fedcba9876543210 2026-01-01T00:00:00Z"
	sampled, span := sdktrace.NewTracerProvider().Tracer("").Start(t.Context(), "request")
	defer span.End()
	claimed := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled}))
	for name, c := range map[string]struct {
		ctx                         context.Context
		had, written, sub, by, want string
	}{
		"tried, sampled":               {sampled, before, "", "dry run", "", before},
		"forged":                       {t.Context(), "", forged, "", "", ""},
		"forged over another":          {t.Context(), before, forged, "", "", ""},
		"forged into the status":       {t.Context(), before, forged, "status", "", before},
		"forged where it is sampled":   {sampled, before, forged, "", "", "own"},
		"claimed to be sampled":        {claimed, "", "", "", "", ""},
		"sampled":                      {sampled, "", "", "", "", "own"},
		"the next write, not sampled":  {t.Context(), before, before, "", "", ""},
		"left out, not sampled":        {t.Context(), before, "", "", "", ""},
		"by the controllers":           {t.Context(), before, before, "", pki.ControllersUser, before},
		"by the controllers, sampled":  {sampled, before, before, "", pki.ControllersUser, before},
		"a status, sampled, by a user": {sampled, before, before, "status", "", before},
	} {
		dryRun := c.sub == "dry run"
		if dryRun {
			c.sub = ""
		}
		object, old := traced(c.written), traced(c.had)
		a := admission.NewAttributesRecord(object, runtime.Object(old), apps.Kind("ReplicaSet").WithVersion("v1"), "shop", "web",
			schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, c.sub, admission.Update, &metav1.UpdateOptions{}, dryRun, &user.DefaultInfo{Name: c.by})
		if err := New(policies{}, nil, nil).Admit(c.ctx, a, nil); err != nil {
			t.Fatal(name, err)
		}
		got, is := object.Annotations[v1beta1.TraceAnnotation]
		if of, ok := v1beta1.ParseTrace(got); c.want == "own" && (!ok || of.Trace != span.SpanContext().TraceID()) || c.want != "own" && got != c.want || is != (c.want != "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func traced(value string) *apps.ReplicaSet {
	object := &apps.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}}
	if value != "" {
		object.Annotations = map[string]string{v1beta1.TraceAnnotation: value}
	}
	return object
}
