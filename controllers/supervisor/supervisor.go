package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// The pause before a part is started again: the first, the longest, and after how long without a failure the next one counts as
// the first.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
	forgiven     = 5 * time.Minute
)

// Failure is how a part failed last.
type Failure struct {
	Component string `json:"component"`
	// Restarts is how often it, or the work on an item in it, was started again since the process began.
	Restarts int `json:"restarts"`
	// Since is when it ended.
	Since time.Time `json:"since"`
	// Running: it has been started again, and has not run for long enough to be taken for well.
	Running bool   `json:"running"`
	Message string `json:"message"`
}

// Supervisor knows which parts have failed. Its methods may be called from any goroutine.
type Supervisor struct {
	mu       sync.Mutex
	failures map[string]*Failure
	changed  Wake
}

// New makes a Supervisor.
func New() *Supervisor {
	registerMetrics()
	return &Supervisor{failures: map[string]*Failure{}, changed: NewWake()}
}

// fatal is an error after which the process must not go on.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// Fatal marks an error after which nothing may be started again, since what failed may still be working.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return fatal{err}
}

// Run runs do until ctx is done, again after a growing pause when it ends before that. It returns nil, or an error that
// do marked as Fatal.
func (s *Supervisor) Run(ctx context.Context, component string, do func(context.Context) error) error {
	pause := firstPause
	ctx = context.WithValue(ctx, inContext{}, s)
	for {
		started := time.Now()
		s.running(component)
		well := time.AfterFunc(forgiven, func() { s.well(component) })
		err := protect(ctx, component, func() error { return do(ctx) })
		well.Stop()
		if f := (fatal{}); errors.As(err, &f) {
			return f.error
		}
		if ctx.Err() != nil {
			s.ended(component)
			return nil
		}
		if err == nil {
			err = errors.New("it ended by itself")
		}
		if time.Since(started) >= forgiven {
			pause = firstPause
		}
		klog.FromContext(ctx).Error(err, "A component failed and will be restarted", "component", component, "after", pause)
		s.failed(component, err)
		select {
		case <-ctx.Done():
			s.ended(component)
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// next returns the failure after one of before, if any.
func next(was *Failure, component string, err error) *Failure {
	now := &Failure{Component: component, Restarts: 1, Since: time.Now().UTC().Truncate(time.Second), Message: err.Error()}
	if was != nil {
		now.Restarts += was.Restarts
	}
	return now
}

func (s *Supervisor) failed(component string, err error) {
	restarts.WithLabelValues(component).Inc()
	up.WithLabelValues(component).Set(0)
	s.update(component, func(was *Failure) *Failure { return next(was, component, err) })
}

func (s *Supervisor) running(component string) {
	up.WithLabelValues(component).Set(1)
	s.update(component, func(was *Failure) *Failure {
		if was == nil {
			return nil
		}
		now := *was
		now.Running = true
		return &now
	})
}

// ended forgets a part that was asked to end, also while it waited for its restart: another process may run it now.
func (s *Supervisor) ended(component string) {
	up.Delete(map[string]string{"component": component})
	s.well(component)
}

// well forgets a failure: the part has run for long since, or was asked to end.
func (s *Supervisor) well(component string) {
	s.update(component, func(*Failure) *Failure { return nil })
}

func (s *Supervisor) update(component string, change func(*Failure) *Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.failures[component]
	now := change(was)
	if now == was {
		return
	}
	if s.failures[component] = now; now == nil {
		delete(s.failures, component)
	}
	s.changed.Signal()
}

// Changed gets a value after Failures has changed.
func (s *Supervisor) Changed() <-chan struct{} { return s.changed }

// Failures are the parts that do not run, or have not run for long since they failed, by name.
func (s *Supervisor) Failures() []Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Failure, 0, len(s.failures))
	for _, f := range s.failures {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b Failure) int { return strings.Compare(a.Component, b.Component) })
	return all
}

// Check returns an error that names the parts which do not run now.
func (s *Supervisor) Check() error {
	var errs []error
	for _, f := range s.Failures() {
		if !f.Running {
			errs = append(errs, fmt.Errorf("%s does not run (restarts: %d): %s", f.Component, f.Restarts, f.Message))
		}
	}
	return errors.Join(errs...)
}
