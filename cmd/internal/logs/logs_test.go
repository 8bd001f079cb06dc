package logs

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"

	"federation/clusterregistry/verbosity"
)

func TestShouldShow(t *testing.T) {
	for _, test := range []struct {
		line, function string
		warns, want    bool
	}{
		{"I1121 report.go:26] changed", "federation/clusterregistry.(*member).report", false, true},
		{"I1121 serve.go:1] x", "main.serve", false, true},
		{"I1121 leaderelection.go:1] successfully acquired lease", "k8s.io/client-go/tools/leaderelection.(*LeaderElector).acquire.func1", false, true},
		{"I1121 handler.go:304] Adding GroupVersion", "k8s.io/apiserver/pkg/server.(*APIServerHandler).x", false, false},
		{"W1121 genericapiserver.go:798] Skipping API", "k8s.io/apiserver/pkg/server.(*GenericAPIServer).InstallAPIGroups", false, false},
		{"W1121 dispatcher.go:1] Failed calling webhook, failing open", "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating.(*mutatingDispatcher).Dispatch", false, true},
		{"E1121 options.go:205] The manifest file is empty, ignoring.", "k8s.io/component-base/metrics.SetLabelAllowListFromManifest", false, false},
		{"E1121 status.go:1] apiserver received an error", "k8s.io/apiserver/pkg/endpoints/handlers/responsewriters.ErrorToAPIStatus", false, true},
		{"", "k8s.io/anything", false, true},
		{`{"ts":1,"caller":"a.go:1","msg":"changed","v":0}`, "federation/clusterregistry.x", false, true},
		{`{"ts":1,"caller":"a.go:1","msg":"Adding GroupVersion","v":0}`, "k8s.io/apiserver/pkg/server.x", false, false},
		{`{"ts":1,"caller":"a.go:1","msg":"Failed calling webhook","v":0}`, "k8s.io/apiserver/pkg/admission.x", true, true},
		{`{"ts":1,"caller":"a.go:1","msg":"Skipping API","v":0}`, "k8s.io/apiserver/pkg/server.x", true, false},
		{`{"ts":1,"caller":"a.go:1","msg":"apiserver received an error","err":"x"}`, "k8s.io/apiserver/pkg/endpoints.x", false, true},
	} {
		if got := shouldShow([]byte(test.line), test.function, test.warns); got != test.want {
			t.Errorf("shouldShow(%q, %s) is %v", test.line, test.function, got)
		}
	}
}

// TestNoLevelShowsSecrets: client-go logs bodies from some level on.
func TestNoLevelShowsSecrets(t *testing.T) {
	logs := logsapi.NewLoggingConfiguration()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(logs, fs)
	if err := fs.Parse([]string{"-v=9"}); err != nil {
		t.Fatal(err)
	}
	if err := Start(logs); err != nil {
		t.Fatal(err)
	}
	defer func() { utilruntime.Must(logsapi.ResetForTest(feature.DefaultFeatureGate)) }()
	if klog.V(verbosity.Most+1).Enabled() || !klog.V(verbosity.Most).Enabled() {
		t.Errorf("-v=9 logs more than level %d, or less", verbosity.Most)
	}
}

// TestBriefKnowsWhoLogs goes through klog as it is set up: the caller is found behind all its frames.
func TestBriefKnowsWhoLogs(t *testing.T) {
	var out bytes.Buffer
	logs := logsapi.NewLoggingConfiguration()
	AddFlags(logs, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err := logsapi.ValidateAndApplyWithOptions(logs, &logsapi.LoggingOptions{ErrorStream: brief{&out}}, feature.DefaultFeatureGate); err != nil {
		t.Fatal(err)
	}
	defer func() { utilruntime.Must(logsapi.ResetForTest(feature.DefaultFeatureGate)) }()
	metrics.SetLabelAllowListFromManifest("") // an error of each start
	utilruntime.HandleError(bytes.ErrTooLarge)
	klog.Info("ours by klog")
	klog.InfoS("ours with keys", "a", 1)
	klog.FromContext(t.Context()).Info("ours by context")
	klog.V(2).Info("deep")
	for text, want := range map[string]bool{"manifest": false, bytes.ErrTooLarge.Error(): true, "ours by klog": true, "ours with keys": true, "ours by context": true, "deep": false} {
		if got := strings.Contains(out.String(), text); got != want {
			t.Errorf("%q is logged: %v\n%s", text, got, out.String())
		}
	}
}

// TestLogsDoNotControlTheTerminal: a member's error reaches the log with whatever is in it.
func TestLogsDoNotControlTheTerminal(t *testing.T) {
	var out strings.Builder
	for _, line := range []string{"E1 \"Failed\" err=<\n\tgone\x1b[2J\u009b1m\r\n >\n", "I1 grüße\n", "\xff\n"} {
		if n, err := (escaping{&out}).Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%q: wrote %d, %v", line, n, err)
		}
	}
	want := "E1 \"Failed\" err=<\n\tgone\\u001b[2J\\u009b1m\\u000d\n >\nI1 grüße\n\xff\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}
