package clusterregistry

import (
	"context"
	"slices"

	"k8s.io/klog/v2"
)

// follower is an Engager and how long it wants to hear of members.
type follower struct {
	Engager
	ctx context.Context
}

// Add has e told of members as long as there are any.
func (r *Registry) Add(e Engager) { r.Follow(context.Background(), e) }

// Follow has e told of members until ctx is done: at once of those that are connected, and then of each new
// connection. The context that e gets ends with the member, or with ctx.
func (r *Registry) Follow(ctx context.Context, e Engager) {
	f := &follower{e, ctx}
	r.mu.Lock()
	r.engagers = append(slices.DeleteFunc(r.engagers, func(f *follower) bool { return f.ctx.Err() != nil }), f)
	members := make([]*Member, 0, len(r.members))
	for _, m := range r.members {
		members = append(members, m)
	}
	r.mu.Unlock()
	for _, m := range members {
		if err := f.engage(m); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot take up a member: it is connected anew", "cluster", m.Name)
			m.cancel(err)
		}
	}
}

// announce makes a member known, and returns whom to tell: in one step, so that each follower hears of it once.
func (r *Registry) announce(m *Member) []*follower {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[m.Name] = m
	return slices.Clone(r.engagers)
}

// engage tells of a member. One who is gone is not told.
func (f *follower) engage(m *Member) error {
	if f.ctx.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(m.ctx)
	stop := context.AfterFunc(f.ctx, func() { cancel(context.Cause(f.ctx)) })
	context.AfterFunc(ctx, func() { stop() }) // so that f does not remember each connection that ever was
	return f.Engage(ctx, m)
}
