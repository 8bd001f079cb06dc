package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"federation/cmd/internal/process"
	"federation/controllers/loadbalancer/plan"
	"federation/controllers/loadbalancer/proxy"
)

// serveMetrics serves metrics, health and traces until ctx ends.
func (o *options) serveMetrics(ctx context.Context, p *proxy.Proxy, ready func() error) error {
	if o.metrics == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.metrics)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address %q: %w", o.metrics, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", process.Handler(ready))
	mux.HandleFunc("GET /trace", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if port, err := strconv.ParseUint(q.Get("port"), 10, 16); err == nil {
			_, _ = io.WriteString(w, plan.TracePort(p.Table(), uint16(port), p.Pool)) // who asked may be gone
			return
		}
		_, _ = io.WriteString(w, plan.Trace(p.Table(), q.Get("host"), q.Get("path"), p.Pool)) // who asked may be gone
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return group.Wait()
}

// maxTrace bounds what is read of a trace in bytes.
const maxTrace = 1 << 20

func traceCommand() *cobra.Command {
	host, path, at, port := "", "/", "127.0.0.1:9154", uint16(0)
	c := &cobra.Command{
		Use:   "trace {--host NAME [--path PATH] | --port PORT}",
		Short: "Say where a request or a connection would go, and why",
		Long: `Ask a running load balancer where it would send a request: the host and rule that match, and for each cluster
its share of new requests, its rank and tier, and why. With --port, where it would pass on a connection to that port of a Service.`,
		Example: `  federation-lb trace --host www.example.com --path /cart
  federation-lb trace --port 5432`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if port != 0 && host == "" {
				return printTrace(c.Context(), c.OutOrStdout(), traceURL(at, url.Values{"port": {strconv.Itoa(int(port))}}))
			}
			if port != 0 || host == "" || path == "" || path[0] != '/' {
				return fmt.Errorf("--host %q, --path %q, --port %d: a host is required or, without one, a port; and the path must begin with a slash", host, path, port)
			}
			return printTrace(c.Context(), c.OutOrStdout(), traceURL(at, url.Values{"host": {host}, "path": {path}}))
		},

		DisableFlagsInUseLine: true,
	}
	c.Flags().StringVar(&host, "host", "", "`NAME` that the request is for")
	c.Flags().StringVar(&path, "path", path, "`PATH` of the request")
	c.Flags().Uint16Var(&port, "port", port, "`PORT` of a Service that the connection is to, in place of --host")
	c.Flags().StringVar(&at, "metrics-address", at, "`HOST:PORT` of the load balancer's --metrics-bind-address")
	return c
}

func traceURL(at string, query url.Values) string {
	u := url.URL{Scheme: "http", Host: at, Path: "/trace", RawQuery: query.Encode()}
	return u.String()
}

func printTrace(ctx context.Context, out io.Writer, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("--metrics-address: no load balancer answers: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // what was read stays
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("--metrics-address: the answer is %s: must be that of a load balancer", answer.Status)
	}
	_, err = io.Copy(out, io.LimitReader(answer.Body, maxTrace))
	return err
}
