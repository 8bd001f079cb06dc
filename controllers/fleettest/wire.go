package fleettest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"federation/clusterregistry"
	"federation/controllers/fleettest/memapi"
	"federation/controllers/writegate"
)

// Fault is what is wrong with a member as a whole.
type Fault string

// The faults of a member.
const (
	// Well: nothing is wrong.
	Well Fault = "well"
	// Partitioned: what is sent is lost until the network heals; then what still waits gets through. Pods run on.
	Partitioned Fault = "partitioned"
	// Hung: the API server is stopped; once it goes on, it carries out what was sent meanwhile, though nobody waits.
	Hung Fault = "hung"
	// Dead: the cluster does not run. Connections are refused, and its pods are gone.
	Dead Fault = "dead"
	// Unhealthy: the API answers that it is not well.
	Unhealthy Fault = "unhealthy"
	// Expired: the credential is no longer accepted.
	Expired Fault = "expired"
)

// Refusal is a rule by which a member answers some writes with an error.
type Refusal struct {
	Resource  string
	Name      string
	Code      int
	Message   string
	Remaining int // how many more times; negative: for ever
}

// Wire is what lies between the federation and one member.
type Wire struct {
	name string

	mu       sync.Mutex
	fault    Fault
	died     time.Time     // when it was last set to Dead
	set      int           // how often something was set
	changed  chan struct{} // closed when fault changes
	latency  time.Duration
	refusals []*Refusal
	lose     int          // answers of writes to lose
	cut      map[int]bool // processes that are cut off from it
	isolated map[int]bool // processes that a drill has cut off from it
	paused   map[int]int  // processes that stand still, and how often they were told to
	panics   *panics
	// onWrite is called with each write that was carried out.
	onWrite func(cluster string, from sender, r memapi.Request, err error)
	api     *memapi.API
	clients map[*memapi.Client]sender
}

func newWire(name string, api *memapi.API, panics *panics, onWrite func(string, sender, memapi.Request, error)) *Wire {
	return &Wire{name: name, fault: Well, changed: make(chan struct{}), cut: map[int]bool{}, isolated: map[int]bool{}, paused: map[int]int{}, panics: panics, onWrite: onWrite, api: api, clients: map[*memapi.Client]sender{}}
}

// sender is who in the federation sends a request: a process, and the span of its work with some shards.
type sender struct {
	process int // 1, 2, …
	// session counts the spans of all processes. 0 is what a process does whichever shards it has.
	session uint64
	// leads: it is what the leader alone does.
	leads bool
	// gate is open while it may write; nil: always.
	gate *writegate.Gate
	// unawaited: the write was carried out when who sent it no longer waited. overtaken: another had changed the object since it was sent.
	// changedPods: it changed the number of pods.
	unawaited, overtaken, changedPods bool
}

// mayWrite returns why a request is not sent: its gate is closed.
func (s sender) mayWrite(r memapi.Request) error {
	if s.gate == nil || !r.Writes() {
		return nil
	}
	return s.gate.Check()
}

// dial makes a client. It is to be hung up.
func (w *Wire) dial(from sender) *memapi.Client {
	c := w.api.Client("federation", func(ctx context.Context, r memapi.Request, do func() error) error {
		w.panics.countDown(from.process)
		if err := from.mayWrite(r); err != nil {
			return err
		}
		return w.carry(ctx, from, r, do)
	})
	c.Slim = clusterregistry.Slim
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients[c] = from
	c.Silence(silences(w.faultFor(from)))
	return c
}

func (w *Wire) hangUp(c *memapi.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.Break()
	delete(w.clients, c)
}

// disconnect ends the connections of a process.
func (w *Wire) disconnect(process int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, from := range w.clients {
		if from.process == process {
			c.Break()
		}
	}
}

// faultFor is what is wrong as one process sees it. It is called with the wire locked.
func (w *Wire) faultFor(from sender) Fault {
	switch {
	case w.isolated[from.process] || w.fault == Well && w.cut[from.process]:
		return Partitioned
	case w.fault == Well && w.paused[from.process] > 0:
		return Hung
	}
	return w.fault
}

func silences(f Fault) bool { return f == Partitioned || f == Hung }

// Cut cuts one process off from the member, until it is healed.
func (w *Wire) Cut(process int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[process] = true
	w.apply()
}

// Isolate has a drill cut one process off from the member, or let it in again. What waited does not pass then.
func (w *Wire) Isolate(process int, off bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isolated[process] == off {
		return
	}
	for c, from := range w.clients {
		if from.process == process && !off {
			c.Break()
		}
	}
	if w.isolated[process] = off; !off {
		delete(w.isolated, process)
	}
	w.apply()
}

// Pause has what one process sends to the member stand still, or go on.
func (w *Wire) Pause(process int, still bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused[process]++; !still {
		w.paused[process] -= 2
	}
	w.apply()
}

// apply brings the clients to what is wrong now. It is called with the wire locked.
func (w *Wire) apply() {
	close(w.changed)
	w.changed = make(chan struct{})
	for c, from := range w.clients {
		f := w.faultFor(from)
		c.Silence(silences(f))
		if f == Dead || f == Expired {
			c.Break()
		}
	}
}

// Fault is what is wrong now. Of a member that only some processes can reach it is Partitioned.
func (w *Wire) Fault() Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == Well && (len(w.cut) > 0 || len(w.isolated) > 0 || w.stands()) {
		return Partitioned
	}
	return w.fault
}

// stands reports whether a process stands still. It is called with the wire locked.
func (w *Wire) stands() bool {
	for _, n := range w.paused {
		if n > 0 {
			return true
		}
	}
	return false
}

// standsStill reports whether a process stands still.
func (w *Wire) standsStill() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stands()
}

// ForAll is what is wrong for all processes.
func (w *Wire) ForAll() Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

// cutOff counts those of the first n processes that are cut off from a member with which nothing else is wrong.
func (w *Wire) cutOff(n int) (off int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for process := range n {
		if w.cut[process+1] || w.isolated[process+1] {
			off++
		}
	}
	return off
}

// apiStart is how long the API of a cluster that lost its power is away, at least: it takes its time to start.
const apiStart = 16 * time.Second

// Set makes something wrong, or well again: at once, unless the cluster lost its power a moment ago. Then the last that is set counts, once its API has started.
func (w *Wire) Set(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set++
	if f == Dead && w.fault != Dead {
		w.died = time.Now()
	}
	if left := time.Until(w.died.Add(apiStart)); w.fault == Dead && f != Dead && left > 0 {
		set := w.set
		time.AfterFunc(left, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.set == set {
				w.become(f)
			}
		})
		return
	}
	w.become(f)
}

// become is called with the wire locked.
func (w *Wire) become(f Fault) {
	w.fault = f
	if f == Well {
		clear(w.cut)
	}
	w.apply()
}

// SetLatency makes each request take at least d.
func (w *Wire) SetLatency(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latency = d
}

// Latency is how long each request takes at least.
func (w *Wire) Latency() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latency
}

// Refuse adds a rule.
func (w *Wire) Refuse(r Refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusals = append(w.refusals, &r)
}

// Accept takes all rules away.
func (w *Wire) Accept() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusals = nil
}

// Refuses reports whether writes of an object are answered with an error.
func (w *Wire) Refuses(resource, name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rule(resource, name) != nil
}

func (w *Wire) rule(resource, name string) *Refusal {
	i := slices.IndexFunc(w.refusals, func(r *Refusal) bool {
		return r.Remaining != 0 && r.Resource == resource && (r.Name == "*" || r.Name == name)
	})
	if i < 0 {
		return nil
	}
	return w.refusals[i]
}

// LoseAnswers has the next n writes carried out without anyone hearing of it.
func (w *Wire) LoseAnswers(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose = n
}

var errLost = errors.New("unexpected EOF")

// carry implements memapi.Wire.
func (w *Wire) carry(ctx context.Context, from sender, r memapi.Request, do func() error) error {
	w.mu.Lock()
	latency := w.latency
	w.mu.Unlock()
	if err := sleep(ctx, latency); err != nil {
		return err
	}
	if err := w.passes(ctx, from, r, do); err != nil {
		return err
	}
	if err := w.refusal(r); err != nil {
		return err
	}
	return w.answer(from, r, do())
}

// answer counts a write that was carried out, and may lose its answer.
func (w *Wire) answer(from sender, r memapi.Request, err error) error {
	if !r.Writes() {
		return err
	}
	w.onWrite(w.name, from, r, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lose > 0 {
		w.lose--
		return errLost
	}
	return err
}

// passes returns when the member can take a request, or why it does not.
func (w *Wire) passes(ctx context.Context, from sender, r memapi.Request, do func() error) error {
	for {
		w.mu.Lock()
		fault, changed := w.faultFor(from), w.changed
		w.mu.Unlock()
		switch fault {
		case Dead:
			return fmt.Errorf("dial tcp %s:6443: connect: connection refused", w.name)
		case Expired:
			return apierrors.NewUnauthorized("the credential has expired")
		case Partitioned, Hung:
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				if fault == Hung && r.Writes() {
					go w.late(from, r, generation(w.api.Get(r.Resource, r.Namespace, r.Name)), do)
				}
				return ctx.Err()
			}
		}
		return ctx.Err()
	}
}

func generation(u *unstructured.Unstructured) int64 {
	if u == nil {
		return 0
	}
	return u.GetGeneration()
}

// late carries a request out when the member, or who sent it, goes on, though nobody waits for the answer. Who sent it could not know. sent is
// the generation of the object when it was sent.
func (w *Wire) late(from sender, r memapi.Request, sent int64, do func() error) {
	for {
		w.mu.Lock()
		fault, changed := w.faultFor(from), w.changed
		w.mu.Unlock()
		if fault != Hung {
			if fault == Well && w.refusal(r) == nil {
				before := w.api.Get(r.Resource, r.Namespace, r.Name)
				err := do()
				after := w.api.Get(r.Resource, r.Namespace, r.Name)
				w.onWrite(w.name, sender{unawaited: true, overtaken: generation(before) != sent, changedPods: before != nil && generation(after) == generation(before)+1 && replicasOf(before) != replicasOf(after)}, r, err)
			}
			return
		}
		<-changed
	}
}

// refusal returns the error by which a write is refused.
func (w *Wire) refusal(r memapi.Request) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rule := w.rule(r.Resource.Resource, r.Name); rule != nil && r.Writes() {
		rule.Remaining--
		return refused(r, *rule)
	}
	return nil
}

func refused(r memapi.Request, rule Refusal) error {
	switch rule.Code {
	case http.StatusUnprocessableEntity:
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: rule.Message}}
	case http.StatusForbidden:
		return apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, errors.New(rule.Message))
	case http.StatusTooManyRequests:
		return apierrors.NewTooManyRequests(rule.Message, 1)
	}
	return apierrors.NewGenericServerResponse(rule.Code, r.Verb, schema.GroupResource{}, r.Name, rule.Message, 0, true)
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var refusesConnections = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}

// faultSeenBy is what is wrong as a process sees it.
func (w *Wire) faultSeenBy(process int) Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.faultFor(sender{process: process})
}

// reach brings a request of the registry of a process to the member, after as long as it takes. It returns what is wrong with it, or why the request does not get there.
func (w *Wire) reach(ctx context.Context, from *control, to clusterregistry.Target) (Fault, error) {
	late := sleep(ctx, w.Latency()) != nil
	fault := w.faultSeenBy(from.slot)
	if isolated, _ := from.registry.Isolated(); to.PastIsolation {
		fault = w.ForAll()
	} else if slices.Contains(isolated, to.Cluster) {
		fault = Partitioned
	}
	defer w.standStill(from)
	switch fault {
	case Partitioned, Hung: // it does not send a byte, however slow it was before
		<-ctx.Done()
		return fault, ctx.Err()
	case Dead:
		return fault, refusesConnections
	}
	if late {
		to.Heard()
		return fault, ctx.Err()
	}
	return fault, nil
}

// standStill returns when a process goes on that stands still: until then it judges nothing.
func (w *Wire) standStill(c *control) {
	for {
		w.mu.Lock()
		still, changed := w.paused[c.slot] > 0, w.changed
		w.mu.Unlock()
		if !still {
			return
		}
		select {
		case <-changed:
		case <-c.done:
			return
		}
	}
}
