package clusterregistry

import (
	"bytes"
	"flag"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"federation/clusterregistry/health"
	"federation/clusterregistry/verbosity"
)

// lines is what was logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// logged keeps what is logged at a level until the end of the test.
func logged(t *testing.T, level int) func() string {
	t.Helper()
	flags, l := flag.NewFlagSet("", flag.PanicOnError), &lines{}
	klog.InitFlags(flags)
	set := func(name, value string) {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	restore := klog.CaptureState()
	t.Cleanup(restore.Restore)
	set("logtostderr", "false")
	set("stderrthreshold", "FATAL")
	set("v", strconv.Itoa(level))
	klog.SetOutput(l)
	return func() string {
		klog.Flush()
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.text.String()
	}
}

// TestLogsHoldNoToken: at the highest level that there is, no token of a member is logged, as it is used, renewed and refused. The test
// looks one level further, too, so that it would see one.
func TestLogsHoldNoToken(t *testing.T) {
	for level, want := range map[int]bool{verbosity.Most: false, verbosity.Most + 2: true} {
		t.Run(strconv.Itoa(level), func(t *testing.T) {
			text := logged(t, level)
			f, east := newFleet(t), newFakeMember(t)
			now := time.Now()
			old, renewed := serviceAccountToken(now.Add(-time.Hour), now.Add(time.Minute)), serviceAccountToken(now, now.Add(time.Hour))
			east.set(func() { east.token, east.mints = old, renewed })
			f.join("east", east, old)
			f.eventually("the renewed token is stored", func() bool { return f.storedToken("east") == renewed })
			east.set(func() { east.token = "another" })
			f.eventuallyReady("east", health.ReasonCredentialRejected)
			logs := text()
			if !strings.Contains(logs, "Response") {
				t.Fatalf("nothing is logged of requests:\n%.2000s", logs)
			}
			if got := strings.Contains(logs, old) || strings.Contains(logs, renewed); got != want {
				t.Errorf("level %d: a token is logged: %v, want %v", level, got, want)
			}
		})
	}
}
