// Command kubectl-federation is a kubectl plugin, "kubectl federation …": it joins clusters to a federation and removes them,
// drains them in order, prints the state of the federation and why an object is where it is, and what would happen if clusters
// were lost.
//
// It parses flags, asks and prints: what it says is decided in the rooms that own it, as controllers/explain, by the functions that the
// federation runs. It links neither the apiserver nor what acts in the controllers, so it stays small. It stores nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root := newCommand(streams)
	root.SetArgs(commandArguments(os.Args))
	err := root.ExecuteContext(ctx)
	if code := exitCode(0); errors.As(err, &code) {
		os.Exit(int(code))
	}
	if err != nil {
		_, _ = fmt.Fprintln(printable{os.Stderr}, "error:", err) // there is nowhere else to print it
		os.Exit(1)
	}
}

func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	streams.Out, streams.ErrOut = printable{streams.Out}, printable{streams.ErrOut}
	root := &cobra.Command{
		Use:   "kubectl-federation",
		Short: "Run a federation of clusters, and see what it does and why",
		Long: `Join clusters to a federation, drain them, see how it stands, and why an object is where it is.

The federation is the API that your kubeconfig's current context points to, as for every kubectl command.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl federation"},
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          help,

		DisableFlagsInUseLine: true,
	}
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.AddGroup(&cobra.Group{ID: "look", Title: "See what there is, and why:"}, &cobra.Group{ID: "clusters", Title: "Clusters:"})
	for group, commands := range map[string][]*cobra.Command{
		"look":     {newStatus(streams), newExplain(streams), newDNS(streams), newPlan(streams), newConsole(streams), newCollect(streams)},
		"clusters": {newJoin(streams), newToken(streams), newUnjoin(streams), newRotate(streams), newCordon(streams), newUncordon(streams), newDrain(streams), newUndrain(streams), newDrill(streams), newApproveDeletions(streams)},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.AddCommand(newVersion(streams))
	return root
}

// tell prints to the terminal. Nobody reads the error.
func tell(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

// stepPrinter prints each step, on standard error.
func stepPrinter(streams genericiooptions.IOStreams) func(string, ...any) {
	return func(format string, args ...any) { tell(streams.ErrOut, format+"\n", args...) }
}

// help runs for a command with subcommands. Because it runs, unknown ones are an error.
func help(c *cobra.Command, _ []string) error { return c.Help() }

func newVersion(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			goVersion := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				goVersion = info.GoVersion
			}
			_, err := fmt.Fprintf(streams.Out, "kubectl-federation %s (%s)\n", version, goVersion)
			return err
		},
	}
}
