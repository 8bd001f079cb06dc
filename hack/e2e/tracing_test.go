package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// spans receives what the federation sends by OTLP, by trace.
type spans struct {
	collector.UnimplementedTraceServiceServer
	mu sync.Mutex
	of map[string][]*tracev1.Span
}

func (s *spans) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range r.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				id := hex.EncodeToString(span.GetTraceId())
				s.of[id] = append(s.of[id], span)
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// tree returns the names of a trace's spans, with the cluster or provider that each is about, sorted; and what is wrong with the tree: a span
// whose parent is missing, a second root.
func (s *spans) tree(id string) (names []string, wrong string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, roots := map[string]bool{}, 0
	for _, span := range s.of[id] {
		known[string(span.GetSpanId())] = true
	}
	for _, span := range s.of[id] {
		name := span.GetName()
		for _, a := range span.GetAttributes() {
			if a.GetKey() == "cluster" || a.GetKey() == "provider" {
				name += " " + a.GetValue().GetStringValue()
			}
		}
		if names = append(names, name); len(span.GetParentSpanId()) == 0 {
			roots++
		} else if !known[string(span.GetParentSpanId())] {
			wrong = name + " has a parent that is not there"
		}
	}
	if roots != 1 {
		wrong = fmt.Sprintf("%d roots", roots)
	}
	slices.Sort(names)
	return slices.Compact(names), wrong
}

// receiveSpans returns a receiver on loopback, and the file of --tracing-config-file that names it.
func receiveSpans(t *testing.T) (*spans, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got, server := &spans{of: map[string][]*tracev1.Span{}}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, got)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	file := filepath.Join(t.TempDir(), "tracing.yaml")
	config := "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: " + listener.Addr().String() + "\nsamplingRatePerMillion: 1000000\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return got, file
}

// TestTraces: the trace of an apply has the request, the placement, the writes to members, their readiness and the publication in DNS as one
// tree; a trace that a user writes into an object is not the object's; members see nothing of it.
func TestTraces(t *testing.T) {
	got, file := receiveSpans(t)
	s.signal(t, syscall.SIGKILL, "federation.pid")
	up(t, "--tracing-config-file="+file)
	t.Cleanup(func() {
		s.signal(t, syscall.SIGKILL, "federation.pid")
		if err := s.up(); err != nil {
			t.Error(err)
		}
	})
	web, err := os.ReadFile(filepath.Join(s.root, "hack/demo/web.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	forged := v1beta1.Trace{Trace: [16]byte{1}, Span: [8]byte{1}, Started: time.Now()}
	apply(t, string(web))
	sets, services := s.fed.client.AppsV1().ReplicaSets("default"), s.fed.client.CoreV1().Services("default")
	var traces []string
	for _, get := range []func() (metav1.Object, error){
		func() (metav1.Object, error) { return sets.Get(t.Context(), "web", metav1.GetOptions{}) },
		func() (metav1.Object, error) { return services.Get(t.Context(), "web", metav1.GetOptions{}) },
	} {
		object, err := get()
		if err != nil {
			t.Fatal(err)
		}
		of, ok := v1beta1.ParseTrace(object.GetAnnotations()[v1beta1.TraceAnnotation])
		if !ok {
			t.Fatalf("%s has the trace %q", object.GetName(), object.GetAnnotations()[v1beta1.TraceAnnotation])
		}
		traces = append(traces, hex.EncodeToString(of.Trace[:]))
	}
	var want [2][]string
	for name := range s.members {
		for i := range want {
			want[i] = append(want[i], "Write to member "+name, "Ready in member "+name)
		}
	}
	want[0] = append(want[0], "Place")
	want[1] = append(want[1], "Publish in DNS built-in")
	for i, id := range traces {
		eventually(t, time.Minute, func() string {
			names, wrong := got.tree(id)
			for _, name := range want[i] {
				if !slices.Contains(names, name) {
					return fmt.Sprintf("%s is not in %q", name, names)
				}
			}
			return wrong
		})
		names, _ := got.tree(id)
		t.Logf("trace %s: %q", id, names)
	}
	s.membersSeeNoTrace(t)

	// What a user writes there counts for nothing, and brings nothing into another's trace.
	if out, err := s.kubectl(t, "", "annotate", "--overwrite", "service", "web", "-n", "default", v1beta1.TraceAnnotation+"="+forged.String()); err != nil {
		t.Fatal(err, out)
	}
	service, err := services.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if value := service.Annotations[v1beta1.TraceAnnotation]; strings.HasPrefix(value, hex.EncodeToString(forged.Trace[:])) {
		t.Errorf("a user wrote the trace %s", value)
	}
}

// membersSeeNoTrace checks that the copies of web have no trace.
func (s *stack) membersSeeNoTrace(t *testing.T) {
	t.Helper()
	for name, member := range s.members {
		copied, err := member.client.CoreV1().Services("default").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if value, is := copied.Annotations[v1beta1.TraceAnnotation]; is {
			t.Errorf("%s sees the trace %s", name, value)
		}
	}
}
