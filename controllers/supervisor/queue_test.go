package supervisor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
)

func TestAnItemThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		tried := map[string][]time.Duration{}
		began := time.Now()
		q.Add("good")
		q.Add("bad")
		q.Add("worse")
		go func() {
			defer close(ended)
			ProcessQueue(ctx, "part", q, func(_ context.Context, item string) error {
				tried[item] = append(tried[item], time.Since(began))
				switch {
				case item == "good" || len(tried[item]) == 3:
					return nil
				case item == "bad":
					return errors.New("bad")
				}
				panic("worse")
			})
		}()
		time.Sleep(time.Minute)
		cancel()
		<-ended
		if again := []time.Duration{0, time.Second, 3 * time.Second}; !slices.Equal(tried["good"], again[:1]) || !slices.Equal(tried["bad"], again) || !slices.Equal(tried["worse"], again) {
			t.Errorf("items are tried at %v", tried)
		}
		if !q.ShuttingDown() || q.NumRequeues("bad") != 0 {
			t.Errorf("at the end: shut down %v, %d failures counted", q.ShuttingDown(), q.NumRequeues("bad"))
		}
	})
}
