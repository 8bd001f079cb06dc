package supervisor

import (
	"context"
	"sync"
)

// Group is work that comes and goes, such as that in each member, and ends with the part that it belongs to. Make it with NewGroup.
type Group struct {
	mu    sync.Mutex
	ended context.Context
	end   context.CancelFunc
	all   sync.WaitGroup
}

// NewGroup makes a Group.
func NewGroup() *Group {
	g := &Group{}
	g.ended, g.end = context.WithCancel(context.Background())
	return g
}

// Start runs do, as Keep does, until ctx is done or the Group ends. If it has ended already, Start returns false without calling do.
func (g *Group) Start(ctx context.Context, component string, do func(context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended.Err() != nil {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.ended, cancel)
	g.all.Go(func() {
		defer cancel()
		defer stop()
		Keep(ctx, component, do)
	})
	return true
}

// End ends all of it, and waits for that.
func (g *Group) End() {
	g.mu.Lock()
	g.end()
	g.mu.Unlock()
	g.all.Wait()
}
