// Package logformat has a process log as text or as JSON, by the flag --logging-format of Kubernetes' components.
package logformat

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/logs/json"
	"k8s.io/klog/v2"

	"federation/clusterregistry/verbosity"
)

// The formats.
const (
	Text = "text"
	JSON = "json"
)

// Usage is that of the flag.
const Usage = "`FORMAT` of the log: text, or json, one object a line"

// Flag is --logging-format of a process that logs by klog alone, which has -v as well.
type Flag struct {
	format string
	level  flag.Value
}

// Add adds the flags. verbosity says what each level shows.
func (f *Flag) Add(root *cobra.Command, verbosity string) {
	logs := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logs)
	f.level = logs.Lookup("v").Value
	root.PersistentFlags().AddGoFlag(logs.Lookup("v"))
	root.PersistentFlags().Lookup("v").Usage = verbosity
	f.format = Text
	root.PersistentFlags().Var(f, "logging-format", Usage)
	_ = root.RegisterFlagCompletionFunc("logging-format", cobra.FixedCompletions([]string{Text, JSON}, cobra.ShellCompDirectiveNoFileComp)) // it is there
}

var _ pflag.Value = &Flag{}

// String implements pflag.Value.
func (f *Flag) String() string { return f.format }

// Type implements pflag.Value.
func (f *Flag) Type() string { return "string" }

// Set implements pflag.Value.
func (f *Flag) Set(to string) error {
	if to != Text && to != JSON {
		return fmt.Errorf("must be %s or %s", Text, JSON)
	}
	f.format = to
	return nil
}

// Apply has klog write to out in the format, up to its verbosity, but nothing that would show keys and tokens.
func (f *Flag) Apply(out io.Writer) {
	if klog.V(verbosity.Most + 1).Enabled() {
		_ = f.level.Set(strconv.Itoa(verbosity.Most)) // it is a number
	}
	if f.format != JSON {
		return
	}
	verbosity := logsapi.VerbosityLevel(0)
	for klog.V(klog.Level(verbosity + 1)).Enabled() {
		verbosity++
	}
	logger, control := json.NewJSONLogger(verbosity, zapcore.Lock(json.AddNopSync(out)), nil, nil)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true), klog.FlushLogger(control.Flush))
	SetFormat(JSON)
}

var asJSON atomic.Bool

// SetFormat sets the format in which Announce and Fail write.
func SetFormat(format string) { asJSON.Store(format == JSON) }

// Announce prints what the process does now, for whoever started it.
func Announce(format string, args ...any) {
	if asJSON.Load() {
		klog.InfofDepth(1, format, args...)
		return
	}
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

// Fail prints why the process ends.
func Fail(program string, err error) {
	if asJSON.Load() {
		klog.ErrorSDepth(1, err, "Ends", "program", program)
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
}
