// Command part is one Service of an application whose Services call each other. It answers HTTP at port 8080 with "POD on NODE" and, below that, what the
// Services answered that it calls, all at once, each over a connection of its own. If one of them fails, so does its answer, with 502 and the reason.
//
//	POD=web-1 NODE=a DOMAIN=shop.svc.clusterset.local. CALLS="cart stock" part
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// longest is what is read of one answer at most.
const longest = 64 << 10

func main() {
	p := &part{
		name: os.Getenv("POD") + " on " + os.Getenv("NODE"), domain: os.Getenv("DOMAIN"), calls: strings.Fields(os.Getenv("CALLS")),
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: ":8080", Handler: p.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Shutdown(context.Background()) // requests that have begun are answered
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "part: error:", err)
		os.Exit(1)
	}
}

// part is one Service of the application.
type part struct {
	name, domain string
	calls        []string
	client       *http.Client
}

func (p *part) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", p.answer)
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {}) // about itself alone: what it calls may be elsewhere
	return mux
}

func (p *part) answer(w http.ResponseWriter, r *http.Request) {
	answers, errs := make([]string, len(p.calls)), make([]error, len(p.calls))
	var calls sync.WaitGroup
	for i, service := range p.calls {
		calls.Go(func() { answers[i], errs[i] = p.call(r.Context(), service) })
	}
	calls.Wait()
	if err := errors.Join(errs...); err != nil {
		http.Error(w, p.name+": "+err.Error(), http.StatusBadGateway)
		return
	}
	_, _ = fmt.Fprintln(w, p.name) // a client that has gone needs no answer
	for i, service := range p.calls {
		_, _ = fmt.Fprintf(w, "  %s: %s\n", service, strings.ReplaceAll(strings.TrimSpace(answers[i]), "\n", "\n  "))
	}
}

func (p *part) call(ctx context.Context, service string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+service+"."+p.domain+"/", nil)
	if err != nil {
		return "", err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // it is read
	body, err := io.ReadAll(io.LimitReader(response.Body, longest))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", service, response.Status, strings.TrimSpace(string(body)))
	}
	return string(body), err
}
