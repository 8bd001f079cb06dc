package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"federation/apiserver/pki"
	"federation/controllers/supervisor"
)

const (
	readyPoll = 50 * time.Millisecond
	// unreadyEvery is how long a server that starts may be unready before it says why, and how often it says it again.
	unreadyEvery = 10 * time.Second
	// upTimeout bounds how long a server that is shutting down may still take to come up.
	upTimeout = 10 * time.Second
	// renewEvery is the period of checking certificates while the server runs.
	renewEvery = 24 * time.Hour
)

// Run serves until ctx ends or the server fails, and then stops etcd. It calls ready, which may be nil, once, when the
// server is ready.
func (s *Server) Run(ctx context.Context, ready func()) error {
	defer s.release()
	asked := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(asked))
	defer cancel(nil)
	prepared, err := s.api.PrepareRun()
	if err != nil {
		return err
	}
	up := make(chan struct{})
	announce := sync.OnceFunc(func() { // also if what comes after it panics and is called again
		close(up)
		if ready != nil {
			ready()
		}
	})
	go supervisor.Keep(ctx, "certificates", s.renew)
	go supervisor.Keep(ctx, "etcd", func(ctx context.Context) { s.watchEtcd(ctx, cancel) })
	go supervisor.Keep(ctx, "apiserver", func(ctx context.Context) {
		if s.waitReady(ctx) {
			announce()
			debug.FreeOSMemory() // building the API's description leaves much behind
		}
	})
	go supervisor.Keep(ctx, "apiserver", func(ctx context.Context) {
		select {
		case <-asked.Done():
			waitUp(up)
			cancel(context.Cause(asked))
		case <-ctx.Done():
		}
	})
	if err := prepared.Run(ctx); err != nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// waitUp lets a server come up before it is shut down: it would otherwise take its end for a failure of what it starts,
// and end the process at once.
func waitUp(up <-chan struct{}) {
	select {
	case <-up:
	case <-time.After(upTimeout):
	}
}

// release releases what New took, in an order in which nobody loses what they still use.
func (s *Server) release() {
	if s.etcd != nil {
		s.etcd.Stop()
	}
	if s.listener != nil {
		s.listener.Close() // after a run the server has closed it
	}
	if s.unlock != nil {
		s.unlock()
	}
}

// watchEtcd ends the server when its embedded etcd ends by itself.
func (s *Server) watchEtcd(ctx context.Context, cancel context.CancelCauseFunc) {
	if s.etcd == nil {
		return
	}
	select {
	case err := <-s.etcd.Err():
		cancel(fmt.Errorf("the embedded etcd ended: %w", err))
	case <-ctx.Done():
	}
}

// waitReady polls /readyz until it is ok, and reports whether that came before the end of ctx.
func (s *Server) waitReady(ctx context.Context) bool {
	config := s.api.GenericAPIServer.LoopbackClientConfig
	client, err := restclient.HTTPClientFor(config)
	if err != nil {
		klog.ErrorS(err, "Cannot check the readiness")
		return false
	}
	told := time.Now()
	err = wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/readyz", nil)
		if err != nil {
			return false, err
		}
		answer, err := client.Do(req)
		if err != nil {
			return false, nil
		}
		ready := answer.StatusCode == http.StatusOK
		if !ready && time.Since(told) >= unreadyEvery {
			klog.ErrorS(s.unready(req), "Not ready yet")
			told = time.Now()
		}
		return ready, answer.Body.Close()
	})
	return err == nil
}

// unready returns which checks fail and why, which /readyz withholds: that the plugin of a KMS is away, and where it was
// looked for.
func (s *Server) unready(req *http.Request) error {
	var errs, hooks []error
	for _, check := range s.api.GenericAPIServer.HealthzChecks() {
		if err := check.Check(req); err != nil && strings.HasPrefix(check.Name(), "poststarthook/") {
			hooks = append(hooks, fmt.Errorf("%s: %w", check.Name(), err))
		} else if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", check.Name(), err))
		}
	}
	if len(errs) == 0 { // otherwise hooks wait for what else is missing
		errs = hooks
	}
	return utilerrors.NewAggregate(errs)
}

// renew renews certificates that expire soon; the server and clients of files read them again.
func (s *Server) renew(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(renewEvery):
			if _, err := pki.Ensure(s.config.DataDir, s.request, time.Now()); err != nil {
				klog.ErrorS(err, "Certificates are not renewed")
			}
		}
	}
}
