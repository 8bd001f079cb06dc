package dnskeys

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/dnskeys/plan"
	"federation/dnsprovider/dnssec"
)

// decideEvery is the period of decisions, askEvery that of queries of the parent zone.
const decideEvery, askEvery = time.Minute, 10 * time.Minute

// Keeper rolls over the keys of a zone. One process at a time runs it; two would do no harm.
type Keeper struct {
	// Secrets are those of v1beta1.FederationNamespace.
	Secrets typedcorev1.SecretInterface
	// Zone is the canonical name of the zone.
	Zone     string
	Settings plan.Settings
	// Above queries the zone's DS records: those of each server of the parent zone, or an error unless all answered.
	Above    func(ctx context.Context, zone string) ([][]*dns.DS, error)
	Recorder record.EventRecorder
}

// Run keeps the keys until the context ends.
func (k Keeper) Run(ctx context.Context) {
	registerMetrics()
	defer deleteMetrics(k.Zone)
	tick := time.NewTicker(decideEvery)
	defer tick.Stop()
	asked := time.Time{}
	for {
		ask := time.Since(asked) >= askEvery
		if ask {
			asked = time.Now()
		}
		if err := k.reconcile(ctx, ask); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Cannot update the keys of the zone; will retry", "zone", k.Zone)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// reconcile decides what to do with the keys now, and writes the result in one update.
func (k Keeper) reconcile(ctx context.Context, ask bool) error {
	secret, err := k.Secrets.Get(ctx, v1beta1.DNSKeysSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // a signing process creates the first one
	}
	if err != nil {
		return err
	}
	ring, err := Read(k.Zone, secret)
	if err != nil {
		return err
	}
	parent, err := k.lookupParent(ctx, secret, ring.Signer.Keys(), ask)
	if err != nil && ring.State.Rolling() {
		k.Recorder.Event(secret, corev1.EventTypeWarning, "ParentZoneLookupFailed", err.Error())
	}
	_, roll := secret.Annotations[v1beta1.DNSSECKeyRolloverAnnotation]
	d := plan.Decide(ring.adoptedState(storedNow()), k.Settings, plan.Facts{Now: storedNow(), Parent: parent, Roll: roll})
	return k.execute(ctx, secret, ring, d)
}

// execute carries out a decision.
func (k Keeper) execute(ctx context.Context, secret *corev1.Secret, ring Ring, d plan.Decision) error {
	keys := ring.Signer.Keys()
	if d.Make {
		key, err := makeKey(ring.Signer.Key.Algorithm, keys)
		if err != nil {
			return err
		}
		keys = append(keys, key)
		d.State = plan.Decide(plan.Add(d.State, key.Tag(), storedNow()), k.Settings, plan.Facts{Now: storedNow()}).State // what it waits for now
		d.Events = append(d.Events, plan.Event{Reason: "KeyCreated", Message: fmt.Sprintf("key %d is in the zone, and will sign it when caches have it", key.Tag())})
	}
	next := secret.DeepCopy()
	delete(next.Annotations, v1beta1.DNSSECKeyRolloverAnnotation)
	if err := putState(next, d.State, keys); err != nil {
		return err
	}
	if !reflect.DeepEqual(next, secret) {
		if _, err := k.Secrets.Update(ctx, next, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	for _, e := range d.Events {
		klog.InfoS("The keys of the zone have changed", "zone", k.Zone, "reason", e.Reason, "message", e.Message)
		k.Recorder.Event(secret, corev1.EventTypeNormal, e.Reason, e.Message)
	}
	setMetrics(k.Zone, d.State)
	return nil
}

// lookupParent returns what the parent zone has, or nil if unknown.
func (k Keeper) lookupParent(ctx context.Context, secret *corev1.Secret, keys []dnssec.Key, ask bool) (*plan.Parent, error) {
	said, err := confirmedParent(secret)
	if said != nil || err != nil || !ask {
		return said, err
	}
	answers, err := k.Above(ctx, k.Zone)
	if err != nil {
		return nil, fmt.Errorf("the parent zone cannot be asked for DS records (say what it has in the annotation %s): %w", v1beta1.DNSSECParentDSAnnotation, err)
	}
	return matchKeys(k.Zone, keys, answers), nil
}

// matchKeys returns which keys the servers' DS records belong to.
func matchKeys(zone string, keys []dnssec.Key, servers [][]*dns.DS) *plan.Parent {
	p := &plan.Parent{}
	for i, records := range servers {
		here := []uint16{}
		for _, ds := range records {
			p.TTL = max(p.TTL, time.Duration(ds.Hdr.Ttl)*time.Second)
			j := slices.IndexFunc(keys, func(k dnssec.Key) bool {
				own := k.DNSKEY(zone).ToDS(ds.DigestType)
				return own != nil && own.KeyTag == ds.KeyTag && own.Algorithm == ds.Algorithm && strings.EqualFold(own.Digest, ds.Digest)
			})
			if j < 0 {
				p.Others = true
				continue
			}
			here = append(here, keys[j].Tag())
		}
		if i == 0 {
			p.All = slices.Clone(here)
		}
		p.All = slices.DeleteFunc(p.All, func(tag uint16) bool { return !slices.Contains(here, tag) })
		p.Any = append(p.Any, here...)
	}
	slices.Sort(p.Any)
	p.Any = slices.Compact(p.Any)
	return p
}
