// Package logs sets up the log of a process that links the apiserver: brief, and harmless to the terminal that shows it.
package logs

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format json

	"federation/clusterregistry/verbosity"
	"federation/cmd/internal/logformat"
)

func init() { utilruntime.Must(logsapi.AddFeatureGates(feature.DefaultMutableFeatureGate)) }

// AddFlags adds the flags of logging; of them -v and --logging-format are shown.
func AddFlags(logs *logsapi.LoggingConfiguration, fs *pflag.FlagSet) {
	logsapi.AddFlags(logs, fs)
	fs.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Name != "v" && f.Name != "logging-format" })
	fs.Lookup("logging-format").Usage = logformat.Usage
	fs.Lookup("v").Usage = "`LEVEL` of the log: 0 changes, warnings and errors; 2 also what Kubernetes' own parts do; 4 to 7 to look for faults; more would show Secrets, and is taken for 7"
}

// Start applies the flags. At level 0 it drops what Kubernetes' libraries say at each start.
func Start(logs *logsapi.LoggingConfiguration) error {
	logs.Verbosity = min(logs.Verbosity, verbosity.Most)
	logformat.SetFormat(logs.Format)
	if logs.Verbosity > 0 || len(logs.VModule) > 0 {
		return logsapi.ValidateAndApplyWithOptions(logs, &logsapi.LoggingOptions{ErrorStream: escaping{os.Stderr}}, feature.DefaultFeatureGate)
	}
	return logsapi.ValidateAndApplyWithOptions(logs, &logsapi.LoggingOptions{ErrorStream: brief{escaping{os.Stderr}}}, feature.DefaultFeatureGate)
}

// escaping writes control characters as Go does in strings, but newlines and tabs: what a member says is part of errors, and must not control the
// terminal on which somebody reads the log. The logger indents all lines of a value but the first.
type escaping struct{ out io.Writer }

func (e escaping) Write(line []byte) (int, error) {
	isControl := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if bytes.IndexFunc(line, isControl) < 0 {
		return e.out.Write(line)
	}
	var escaped []byte
	for _, r := range string(line) {
		if isControl(r) {
			escaped = fmt.Appendf(escaped, "\\u%04x", r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	_, err := e.out.Write(escaped)
	return len(line), err
}

// brief drops what Kubernetes' libraries say in over a hundred lines at each start, and keeps what we
// say ourselves, and warnings and errors. Log lines come one a Write, in the goroutine that logs.
type brief struct{ out io.Writer }

func (b brief) Write(line []byte) (int, error) {
	if function, warns := caller(); !shouldShow(line, function, warns) {
		return len(line), nil
	}
	return b.out.Write(line)
}

// Ignored are warnings and errors of each start, and of each watch of a cluster that went away: our own lines say the same.
var (
	ignoredMessages = []string{"The manifest file is empty, ignoring.", "kube-apiserver-legacy-service-account-token-tracking"}
	ignoredCallers  = []string{"k8s.io/apiserver/pkg/server.", "k8s.io/component-base/compatibility.", "k8s.io/client-go/tools/cache."}
	shownCallers    = []string{"federation/", "main.", "k8s.io/client-go/tools/leaderelection."}
	loggingCallers  = []string{"k8s.io/klog/", "github.com/go-logr/", "k8s.io/component-base/logs/", "go.uber.org/zap"}
)

// shouldShow reports whether an operator should see a line that the function logged. warns: as a warning, which a line of JSON does not say.
func shouldShow(line []byte, function string, warns bool) bool {
	if hasPrefix(function, shownCallers) || len(line) == 0 {
		return true
	}
	for _, text := range ignoredMessages {
		if bytes.Contains(line, []byte(text)) {
			return false
		}
	}
	switch isJSON := line[0] == '{'; {
	case line[0] == 'W' || isJSON && warns:
		return !hasPrefix(function, ignoredCallers)
	case line[0] == 'I':
		return false
	default:
		return !isJSON || !bytes.Contains(line, []byte(`,"v":`)) // errors have no level
	}
}

// caller is the function that logs, with its package. warns: by one of klog's functions for warnings.
func caller() (function string, warns bool) {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		if !more || !hasPrefix(frame.Function, loggingCallers) {
			return frame.Function, warns
		}
		warns = warns || strings.HasPrefix(frame.Function, "k8s.io/klog/v2.Warning")
	}
}

func hasPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
