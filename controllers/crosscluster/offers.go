package crosscluster

import (
	"reflect"
	"sync"

	"federation/controllers/servicedns/plan"
)

// Offers are what clusters have of all Services, by namespace/name. They outlive the controllers that follow them.
type Offers struct {
	// planned is closed once the offers of all Services are known.
	planned chan struct{}
	settle  func()

	mu        sync.Mutex
	known     map[string][]plan.Offer
	followers map[*func(service string)]bool
}

// NewOffers returns empty Offers.
func NewOffers() *Offers {
	planned := make(chan struct{})
	return &Offers{
		planned: planned, settle: sync.OnceFunc(func() { close(planned) }),
		known: map[string][]plan.Offer{}, followers: map[*func(string)]bool{},
	}
}

// Set takes in changes; nil means that a Service no longer exists. The first call has all Services.
func (o *Offers) Set(changed map[string][]plan.Offer) {
	defer o.settle()
	o.mu.Lock()
	defer o.mu.Unlock()
	for service, offers := range changed {
		if was, there := o.known[service]; there == (offers != nil) && reflect.DeepEqual(was, offers) {
			continue
		}
		if o.known[service] = offers; offers == nil {
			delete(o.known, service)
		}
		for follower := range o.followers {
			(*follower)(service)
		}
	}
}

// of returns the offers of a Service, which must not be changed. known is false if the Service does not exist or could
// not be parsed.
func (o *Offers) of(service string) (offers []plan.Offer, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	offers, known = o.known[service]
	return offers, known
}

// follow calls changed, which must not block, for each Service that changes, until unfollow is called.
func (o *Offers) follow(changed func(service string)) (unfollow func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.followers[&changed] = true
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.followers, &changed)
	}
}
