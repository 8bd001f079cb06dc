package explain

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
)

const (
	// keptFor is how long an answer is given again to whoever had it.
	keptFor = time.Second
	// mostTurns is how many reviews are looked at, at once, and mostOfOne how many of them of one caller.
	mostTurns, mostOfOne = 64, 4
	// mostAtOnce is how many are being answered at once, and eachSecond and burst how many of one namespace: each asks every member.
	mostAtOnce = 16
	eachSecond = 5
	burst      = 10
)

// answers keeps reviews from asking members more than they need: the same question is asked once, and each namespace has its share.
type answers struct {
	mu     sync.Mutex
	turns  map[string]int // by caller
	taken  int            // of turns
	recent map[string]*answer
	asking int
	shares map[string]*rate.Limiter // by namespace; those that are whole again are dropped
}

// answer is one that is being made, or has been.
type answer struct {
	done   chan struct{} // closed when it has been made
	status *v1beta1.PlacementReviewStatus
	err    error
}

// enter takes a turn for a caller, which is done with it when it calls leave. All ServiceAccounts of a namespace are one caller: who may make one may
// make any number.
func (a *answers) enter(caller string) (leave func(), err error) {
	if namespace, _, is := strings.Cut(strings.TrimPrefix(caller, serviceAccountPrefix), ":"); is && strings.HasPrefix(caller, serviceAccountPrefix) {
		caller = serviceAccountPrefix + namespace
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.taken >= mostTurns || a.turns[caller] >= mostOfOne {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("%d placement reviews are being answered, %d of %s: at most %d are at once, and %d of one caller", a.taken, a.turns[caller], caller, mostTurns, mostOfOne), 1)
	}
	if a.turns == nil {
		a.turns = map[string]int{}
	}
	a.turns[caller]++
	a.taken++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.taken--
		if a.turns[caller]--; a.turns[caller] == 0 {
			delete(a.turns, caller)
		}
	}, nil
}

// serviceAccountPrefix begins the names of ServiceAccounts: system:serviceaccount:NAMESPACE:NAME.
const serviceAccountPrefix = "system:serviceaccount:"

// of returns the answer to a question about an object of a namespace. Who asks what somebody is asking waits for that answer. A status that is
// returned must not be changed.
func (a *answers) of(ctx context.Context, question, namespace string, ask func(context.Context) (*v1beta1.PlacementReviewStatus, error)) (*v1beta1.PlacementReviewStatus, error) {
	one, isNew, err := a.begin(question, namespace)
	if err != nil {
		return nil, err
	}
	if isNew {
		a.make(ctx, question, one, ask)
	}
	select {
	case <-one.done:
		return one.status, one.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin returns the answer that is there, or an empty one that the caller makes.
func (a *answers) begin(question, namespace string) (one *answer, isNew bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one = a.recent[question]; one != nil {
		return one, false, nil
	}
	if a.asking >= mostAtOnce {
		return nil, false, apierrors.NewTooManyRequests("as many placement reviews as may be are being answered right now: ask again in a second", 1)
	}
	if !a.share(namespace).Allow() {
		return nil, false, apierrors.NewTooManyRequests("more placement reviews of objects in namespace "+namespace+" than 5 a second: ask again in a second", 1)
	}
	if a.recent == nil {
		a.recent = map[string]*answer{}
	}
	one = &answer{done: make(chan struct{})}
	a.recent[question] = one
	a.asking++
	return one, true, nil
}

// share returns the limiter of a namespace.
func (a *answers) share(namespace string) *rate.Limiter {
	if a.shares[namespace] == nil {
		for name, l := range a.shares {
			if l.Tokens() >= burst {
				delete(a.shares, name)
			}
		}
		if a.shares == nil {
			a.shares = map[string]*rate.Limiter{}
		}
		a.shares[namespace] = rate.NewLimiter(eachSecond, burst)
	}
	return a.shares[namespace]
}

// make makes an answer for all who wait for it, though who asked first goes away.
func (a *answers) make(ctx context.Context, question string, one *answer, ask func(context.Context) (*v1beta1.PlacementReviewStatus, error)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
	defer cancel()
	one.err = supervisor.Protect(ctx, "placement reviews", func() (err error) {
		one.status, err = ask(ctx)
		return err
	})
	a.mu.Lock()
	a.asking--
	a.mu.Unlock()
	close(one.done)
	time.AfterFunc(keptFor, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.recent, question)
	})
}
