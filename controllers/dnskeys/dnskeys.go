package dnskeys

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/dnskeys/plan"
	"federation/dnsprovider/dnssec"
)

// readEvery is the period of reading the Secret, waitEvery the same while there are no keys yet.
const readEvery, waitEvery = 30 * time.Second, time.Second

// Options configure the signing of a zone.
type Options struct {
	// Secrets are those of v1beta1.FederationNamespace.
	Secrets typedcorev1.SecretInterface
	// Zone is the canonical name of the zone.
	Zone string
	// Make creates a key if there is none. Without it Run waits for the key.
	Make bool
	// Use is called with the keys at first, and when they have changed.
	Use func(*dnssec.Signer) error
	// Ready, if set, is called once the keys are in use.
	Ready func()
}

// used is what a zone is signed with.
type used struct {
	data   map[string][]byte
	submit []uint16
}

// Run keeps the keys in use until the context ends, and then returns nil. It retries what fails.
func (o Options) Run(ctx context.Context) error {
	var now *used
	for {
		next, err := o.loadKeys(ctx, now)
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Cannot update the keys that sign the zone; will retry", "zone", o.Zone)
		}
		if err == nil {
			if now == nil && o.Ready != nil {
				o.Ready()
			}
			now = next
		}
		pause := readEvery
		if now == nil {
			pause = waitEvery
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// loadKeys puts the keys of the Secret in use, unless they are already. It returns them.
func (o Options) loadKeys(ctx context.Context, now *used) (*used, error) {
	secret, err := o.Secrets.Get(ctx, v1beta1.DNSKeysSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && o.Make {
		secret, err = o.createSecret(ctx)
	}
	if err != nil {
		return nil, err
	}
	ring, err := Read(o.Zone, secret)
	if err != nil {
		return nil, err
	}
	if now != nil && maps.EqualFunc(secret.Data, now.data, bytes.Equal) && slices.Equal(ring.Signer.Submit, now.submit) {
		return now, nil
	}
	return &used{secret.Data, ring.Signer.Submit}, o.Use(ring.Signer)
}

// createSecret creates a key, unless another process was faster.
func (o Options) createSecret(ctx context.Context) (*corev1.Secret, error) {
	key, err := dnssec.NewKey(dnssec.ECDSAP256)
	if err != nil {
		return nil, err
	}
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.DNSKeysSecret}}
	if err := putState(made, plan.Add(plan.State{}, key.Tag(), storedNow()), []dnssec.Key{key}); err != nil {
		return nil, err
	}
	secret, err := o.Secrets.Create(ctx, made, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return o.Secrets.Get(ctx, v1beta1.DNSKeysSecret, metav1.GetOptions{})
	}
	if err == nil {
		klog.InfoS("Created the key that signs the zone", "zone", o.Zone, "secret", klog.KObj(secret), "ds", key.DS(o.Zone).String())
	}
	return secret, err
}

// storedNow returns the time as it is stored: in seconds.
func storedNow() time.Time { return time.Now().UTC().Truncate(time.Second) }
