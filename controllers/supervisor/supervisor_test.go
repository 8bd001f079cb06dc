package supervisor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

func TestWhatFailsIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		ctx, cancel := context.WithCancel(t.Context())
		var starts []time.Duration
		starting := make(chan time.Duration, 10)
		began, ended, n := time.Now(), make(chan error, 1), 0
		go func() {
			ended <- s.Run(ctx, "part", func(ctx context.Context) error {
				starting <- time.Since(began)
				switch n++; n {
				case 1:
					return errors.New("broken")
				case 2:
					panic("worse")
				case 3:
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		for _, want := range []string{"broken", "panic: worse", "ended by itself"} {
			synctest.Wait()
			if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("after %v: %v, want %q", time.Since(began), err, want)
			}
			starts = append(starts, <-starting)
			time.Sleep(time.Duration(1<<(len(starts)-1)) * firstPause)
		}
		synctest.Wait()
		starts = append(starts, <-starting)
		if f := s.Failures(); len(f) != 1 || !f[0].Running || f[0].Restarts != 3 || s.Check() != nil {
			t.Errorf("started again: %+v, %v", f, s.Check())
		}
		time.Sleep(forgiven)
		synctest.Wait()
		if f := s.Failures(); len(f) != 0 {
			t.Errorf("long after: %+v", f)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if want := []time.Duration{0, firstPause, 3 * firstPause, 7 * firstPause}; len(starting) != 0 || starts[3] != want[3] || starts[2] != want[2] {
			t.Errorf("started at %v, want %v", starts, want)
		}
	})
}

// TestAPartThatEndsInAPauseIsForgotten: a part of who leads has failed, and another process leads before it is started again. Of the first process nothing is said any more.
func TestAPartThatEndsInAPauseIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- s.Run(ctx, "pausing", func(context.Context) error { return errors.New("broken") })
		}()
		synctest.Wait()
		if s.Check() == nil || !shown(t, "pausing") {
			t.Errorf("in the pause: %v", s.Check())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Check(); err != nil || shown(t, "pausing") {
			t.Errorf("after its end: %v, in metrics %t", err, shown(t, "pausing"))
		}
	})
}

// shown reports whether there is a metric of a part.
func shown(t *testing.T, component string) bool {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "federation_component_up" && slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == component }) {
				return true
			}
		}
	}
	return false
}

func TestWhatIsFatalIsNotStartedAgain(t *testing.T) {
	stuck := errors.New("stuck")
	err := New().Run(t.Context(), "part", func(context.Context) error { return errors.Join(errors.New("more"), Fatal(stuck)) })
	if !errors.Is(err, stuck) {
		t.Errorf("%v, want %v", err, stuck)
	}
}

func TestAPanicThatAPartSurvivesIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		ctx, cancel := context.WithCancel(t.Context())
		ended, calls := make(chan error, 1), 0
		go func() {
			ended <- s.Run(ctx, "part", func(ctx context.Context) error {
				go Keep(ctx, "loop", func(ctx context.Context) {
					if calls++; calls < 3 {
						panic("over one object")
					}
				})
				if err := Protect(ctx, "item", func() error { panic("over another") }); !errors.Is(err, ErrPanic) {
					t.Errorf("an item's panic is the error %v", err)
				}
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(3 * firstPause)
		synctest.Wait()
		f := s.Failures()
		if len(f) != 2 || f[0].Component != "item" || f[0].Restarts != 1 || f[1].Component != "loop" || f[1].Restarts != 2 || !f[1].Running || f[1].Message != "panic: over one object" {
			t.Errorf("shown: %+v", f)
		}
		if err := s.Check(); err != nil || calls != 3 {
			t.Errorf("all parts run: %v, after %d calls, want 3", err, calls)
		}
		time.Sleep(forgiven)
		synctest.Wait()
		if f := s.Failures(); len(f) != 0 {
			t.Errorf("long after: %+v", f)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
