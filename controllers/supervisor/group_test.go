package supervisor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAGroupEndsItsWorkAndTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup()
		ended := map[string]time.Duration{}
		began := time.Now()
		work := func(name string) func(context.Context) {
			return func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(time.Second)
				ended[name] = time.Since(began)
			}
		}
		leaves, leave := context.WithCancel(t.Context())
		if !g.Start(leaves, "part", work("leaves")) || !g.Start(t.Context(), "part", work("stays")) {
			t.Fatal("nothing is started")
		}
		leave()
		time.Sleep(time.Minute)
		g.End()
		if len(ended) != 2 || ended["leaves"] != time.Second || ended["stays"] != time.Minute+time.Second {
			t.Errorf("work has ended at %v", ended)
		}
		if g.Start(t.Context(), "part", work("late")) {
			t.Error("work is started after the end")
		}
	})
}
