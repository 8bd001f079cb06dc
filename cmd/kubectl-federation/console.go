package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
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
	if err := findConsole(ctx, config); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("--port %d: %w", o.port, err)
	}
	g := &gate{host: listener.Addr().String(), key: rand.Text(), session: rand.Text(), own: rand.Text()}
	if g.api, err = newAPIProxy(config); err != nil {
		return err
	}
	g.local = (&consoleAnswers{command: o, server: config.Host, namespace: namespace, runs: &consoleRuns{ctx: ctx}}).handler()
	server := &http.Server{Handler: g, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	tell(o.Out, "console: %s\n", g.address())
	if !o.noBrowser {
		remove, err := o.open(ctx, g.address())
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

// findConsole returns an error that says what to do if the federation cannot be reached, or serves no console.
func findConsole(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	base, err := serverURL(config)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, base.JoinPath("/console/").String(), nil)
	if err != nil {
		return err
	}
	r.Host = serverName(config)
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("the federation (--kubeconfig, --context): %w", err)
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusForbidden:
		return fmt.Errorf("%s serves no console by the name %s: use one of its certificate's names (--tls-san adds one)", config.Host, r.Host)
	}
	return fmt.Errorf("%s serves no console: it runs with --console=false, or is no federation that has one (it answers %q)", config.Host, answer.Status)
}

// open has the browser open the address. It goes by a file that only its user can read: the arguments of a process can
// be seen by everybody on the machine. remove removes it.
func (o *consoleCommand) open(ctx context.Context, address string) (remove func(), err error) {
	remove = func() {}
	var words []string
	switch runtime.GOOS {
	case "darwin":
		words = []string{"open"}
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			return remove, errors.New("there is no display")
		}
		words = []string{"xdg-open"}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return remove, err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return remove, err
	}
	dir, err := os.MkdirTemp(cache, "kubectl-federation-console-")
	if err != nil {
		return remove, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // what stays is of no use once this process has ended
	page := filepath.Join(dir, "open.html")
	if err := os.WriteFile(page, []byte(`<!doctype html><meta http-equiv="refresh" content="0;url=`+address+`">`), 0o600); err != nil {
		return remove, err
	}
	return remove, exec.CommandContext(ctx, words[0], append(words[1:], page)...).Start()
}
