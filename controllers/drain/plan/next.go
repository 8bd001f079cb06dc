package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// dnsPropagation is how long DNS servers may take to have the weight, in addition to the TTL.
	dnsPropagation = 2 * time.Second
	// emptyFor is how long a cluster must have been empty: the caches of what is placed there are a moment late.
	emptyFor = time.Second
	// readyFor is how long all that is placed must have been ready, unchanged, before DNS points there again: a placement on
	// its way has arrived by then.
	readyFor = 5 * time.Second
	// lookAgain is the period of looks while something is waited for.
	lookAgain = 2 * time.Second
	// maxWaiting is how many objects a status names.
	maxWaiting = 5
)

// World is what a drain is decided from, beside the Cluster.
type World struct {
	Now time.Time
	// TTL is how long resolvers may keep an address in the cluster, and Providers are the DNS providers, where WantsDNS says.
	TTL       time.Duration
	Providers []v1beta1.DNSProvider
	// Contents is what is in the cluster, where WantsContents says.
	Contents Contents
	// Steady is what was seen of the contents before.
	Steady Steady
}

// Step is what is to be done next.
type Step struct {
	// Cluster is the Cluster as it is to be, of the version that it was decided from; nil: it stays.
	Cluster *v1beta1.Cluster
	// Event is the reason of the event after that, "" for none; Message is its text.
	Event, Message string
	// Status is the Cluster's status.drain. It is written if Cluster is nil.
	Status *v1beta1.ClusterDrainStatus
	// Steady is for the World of the next look.
	Steady Steady
	// LookAgain is when to look again, whatever happens; 0: when the Cluster changes.
	LookAgain time.Duration
}

// Concerns reports whether a Cluster is drained by the federation, or is to be, or has a status that says so.
func Concerns(c *v1beta1.Cluster) bool {
	return c.DeletionTimestamp == nil && (c.Spec.Drain != nil || c.Status.Drain != nil || stepOf(c) != "")
}

// WantsDNS reports whether the next step depends on DNS.
func WantsDNS(c *v1beta1.Cluster) bool {
	return c.Spec.Drain != nil && c.Spec.Drain.TTLSeconds == nil && stepOf(c) == v1beta1.DrainStepDNS && c.DNSWeight() == 0 && !HasTaint(c, Taint)
}

// WantsContents reports whether the next step depends on what is in the cluster.
func WantsContents(c *v1beta1.Cluster) bool {
	d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	if err != nil || d == nil {
		return false
	}
	if c.Spec.Drain == nil {
		return d.Step == v1beta1.DrainStepReturn
	}
	return d.Step == v1beta1.DrainStepMove && !d.Empty && HasTaint(c, Taint)
}

// stepOf returns the last step of the federation's drain of a cluster, or "".
func stepOf(c *v1beta1.Cluster) string {
	d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	if err != nil || d == nil {
		return ""
	}
	return d.Step
}

// Next returns what to do next with a Cluster that this package Concerns. What drills and people have taken out without
// spec.drain stays as it is.
func Next(c *v1beta1.Cluster, w World) Step {
	d, err := v1beta1.ParseDrain(c.Annotations[v1beta1.DrainAnnotation])
	switch {
	case c.Spec.Drain == nil && err == nil && d != nil && d.Step != "":
		return undo(c, d, w)
	case c.Spec.Drain == nil:
		return Step{}
	case err != nil:
		return wait(c, w, v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainBlocked, Message: "kubectl federation undrain removes what cannot be read: " + err.Error()}, 0)
	case d == nil, d.Step == "", d.Step == v1beta1.DrainStepReturn, d.Step == v1beta1.DrainStepDNS && c.DNSWeight() != 0:
		s := act(c, func(c *v1beta1.Cluster) { Begin(c, w.Now) })
		s.Event, s.Message = v1beta1.EventDraining, "its weight in DNS is 0; its replicas move when no resolver has its addresses"
		return s
	case d.Step == v1beta1.DrainStepDNS:
		return leaveDNS(c, d, w)
	case !HasTaint(c, Taint):
		return wait(c, w, v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainBlocked, Message: fmt.Sprintf("somebody took the taint %s off: drain adds it again, undrain brings the cluster back", Taint.ToString())}, 0)
	case d.Empty:
		return wait(c, w, v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainDrained}, 0)
	}
	s := w.Steady
	if s.observe(v1beta1.DrainEvicting, &w.Contents, w.Now) >= emptyFor {
		end := act(c, func(c *v1beta1.Cluster) { Finish(c, w.Now) })
		end.Event, end.Message = v1beta1.EventDrained, "no replica is left there; cordoned"
		return end
	}
	next := wait(c, w, moving(&w.Contents), lookAgain)
	next.Steady = s
	return next
}

// leaveDNS waits until no resolver has the cluster's addresses, and has its replicas move then.
func leaveDNS(c *v1beta1.Cluster, d *v1beta1.Drain, w World) Step {
	if HasTaint(c, Taint) {
		return act(c, Evict) // its replicas move already
	}
	ttl, providers, propagation := w.TTL, w.Providers, dnsPropagation
	if fixed := c.Spec.Drain.TTLSeconds; fixed != nil {
		if ttl, providers = time.Duration(*fixed)*time.Second, nil; ttl == 0 {
			propagation = 0
		}
	}
	from := d.Since.Time
	for _, p := range providers {
		if !p.Published {
			return wait(c, w, v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainPublishing, Message: fmt.Sprintf("DNS provider %s: %s", p.Name, p.Message)}, lookAgain)
		}
		if p.Since.After(from) {
			from = p.Since.Time
		}
	}
	until := metav1.NewTime(from.Add(ttl + propagation))
	if left := until.Sub(w.Now); left > 0 {
		return wait(c, w, v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainExpiring, Until: &until}, min(left, lookAgain)) // a provider may get behind meanwhile
	}
	return act(c, Evict)
}

// undo brings a cluster back.
func undo(c *v1beta1.Cluster, d *v1beta1.Drain, w World) Step {
	if d.Step != v1beta1.DrainStepReturn {
		return act(c, Untaint)
	}
	s := w.Steady
	if s.observe(v1beta1.DrainReturning, &w.Contents, w.Now) >= readyFor {
		end := act(c, End)
		end.Event, end.Message = v1beta1.EventUndrained, "all that is placed there is ready; its weight in DNS is restored"
		return end
	}
	next := wait(c, w, returning(&w.Contents), lookAgain)
	next.Steady = s
	return next
}

// act changes the Cluster.
func act(c *v1beta1.Cluster, how func(*v1beta1.Cluster)) Step {
	after := c.DeepCopy()
	how(after)
	if len(after.Spec.Taints) == 0 {
		after.Spec.Taints = nil
	}
	return Step{Cluster: after, LookAgain: lookAgain} // should the change not be heard of
}

// wait reports what is waited for. Since is kept while the phase is.
func wait(c *v1beta1.Cluster, w World, s v1beta1.ClusterDrainStatus, again time.Duration) Step {
	s.Since, s.Message = metav1.NewTime(w.Now.UTC().Truncate(time.Second)), v1beta1.Printable(s.Message)
	if was := c.Status.Drain; was != nil && was.Phase == s.Phase {
		s.Since = was.Since
	}
	return Step{Status: &s, LookAgain: again}
}

func moving(c *Contents) v1beta1.ClusterDrainStatus {
	s := v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainEvicting}
	if c.Unknown != "" {
		s.Message = "what runs there is not known: " + c.Unknown
	}
	left := c.left()
	for i := range left {
		o := &left[i]
		s.Placed, s.Current, s.Ready = s.Placed+o.Placed, s.Current+max(o.Current, o.Ready), s.Ready+o.Ready
	}
	return waitingFor(s, left)
}

func returning(c *Contents) v1beta1.ClusterDrainStatus {
	s := v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainReturning}
	for i := range c.Objects {
		if o := &c.Objects[i]; !o.Finished {
			s.Placed, s.Current, s.Ready = s.Placed+o.Placed, s.Current+max(o.Current, o.Ready), s.Ready+o.Ready
		}
	}
	missing := c.missing()
	if c.Unknown != "" && len(missing) > 0 {
		s.Message = "what runs there is not known: " + c.Unknown
	}
	return waitingFor(s, missing)
}

func waitingFor(s v1beta1.ClusterDrainStatus, objects []Object) v1beta1.ClusterDrainStatus {
	s.Objects = int32(len(objects))
	for i := range objects[:min(len(objects), maxWaiting)] {
		o := &objects[i]
		s.Waiting = append(s.Waiting, v1beta1.DrainObject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Placed: o.Placed, Current: o.Current, Ready: o.Ready, Message: v1beta1.Printable(o.Message)})
	}
	return s
}
