package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/console/gate"
)

type consoleCommand struct {
	target
	genericiooptions.IOStreams
	port      int
	noBrowser bool
}

func newConsole(streams genericiooptions.IOStreams) *cobra.Command {
	o := &consoleCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "console",
		Short: "Show the federation in a browser",
		Long: `Show the federation in a browser: its clusters, where workloads are and why, what names answer, what would happen
if clusters were lost, and drills.

It serves the federation's own pages on 127.0.0.1, reaches the API with your kubeconfig's credential, and opens the
browser there. The address that it prints has a secret: whoever has it can do at the federation what you may. It ends
with Ctrl-C, and so does what was begun there and runs here. Drains and drills are the federation's, and go on.`,
		Example: `  kubectl federation console
  kubectl federation console --port 8001 --no-browser`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.addFlags(c)
	c.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace that pages begin with; without it that of the context")
	c.Flags().IntVar(&o.port, "port", 0, "port on 127.0.0.1; 0 takes a free one")
	c.Flags().BoolVar(&o.noBrowser, "no-browser", false, "only print the address")
	_ = c.RegisterFlagCompletionFunc("namespace", o.completeWith(completeNamespaces)) // fails only for a flag that is not there
	return c
}

func (o *consoleCommand) run(ctx context.Context) error {
	if o.port < 0 || o.port > 65535 {
		return fmt.Errorf("--port %d: must be from 0 to 65535", o.port)
	}
	config, namespace, err := o.config()
	if err != nil {
		return err
	}
	if err := gate.CheckConsole(ctx, config); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("--port %d: %w", o.port, err)
	}
	g, err := gate.New(ctx, listener.Addr().String(), gate.Options{API: config, Namespace: namespace, Version: version, Run: o.execute})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	tell(o.Out, "console: %s\n", g.Address())
	if !o.noBrowser {
		remove, err := gate.OpenBrowser(ctx, g.Address())
		defer remove()
		if err != nil {
			tell(o.ErrOut, "no browser was opened (%v): open that address yourself\n", err)
		}
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return server.Close() // watches do not end by themselves
	}
}

// execute runs a command of this program, at the federation that the console is for.
func (o *consoleCommand) execute(ctx context.Context, out, errOut io.Writer, args []string) error {
	root, t := newCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}), o.target
	where := []string{"--kubeconfig=" + t.kubeconfig, "--context=" + t.context}
	if t.as != "" {
		where = append(where, "--as="+t.as)
	}
	for _, group := range t.asGroups {
		where = append(where, "--as-group="+group)
	}
	words := commandWords(args)
	root.SetArgs(append(append(args[:words:words], where...), args[words:]...))
	return root.ExecuteContext(ctx)
}

// commandWords counts the words at the beginning that name the command, before the first flag.
func commandWords(args []string) (n int) {
	for n < len(args) && !strings.HasPrefix(args[n], "-") {
		n++
	}
	return n
}
