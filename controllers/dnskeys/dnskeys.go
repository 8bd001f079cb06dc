package dnskeys

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider/dnssec"
)

const (
	// signing is the entry with the key that signs.
	signing = "signing.pem"
	// readEvery is how often the Secret is read, and waitEvery while there are no keys yet.
	readEvery, waitEvery = 30 * time.Second, time.Second
)

// Options are what keeps a zone signed.
type Options struct {
	// Secrets are those of v1beta1.FederationNamespace.
	Secrets typedcorev1.SecretInterface
	// Zone is the canonical name of the zone.
	Zone string
	// Make says to make a key where there is none. Without it the key is waited for.
	Make bool
	// Use is called with the keys at first, and when they have changed.
	Use func(*dnssec.Signer) error
	// Ready is called once when the keys are used; nil: nobody waits for it.
	Ready func()
}

// Run has the keys used until the context ends, and returns nil then. What fails is tried again.
func (o Options) Run(ctx context.Context) error {
	var used map[string][]byte
	for {
		keys, err := o.once(ctx, used)
		if err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "No new keys to sign the zone with", "zone", o.Zone)
		}
		if err == nil {
			if used == nil && o.Ready != nil {
				o.Ready()
			}
			used = keys
		}
		pause := readEvery
		if used == nil {
			pause = waitEvery
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// once uses the keys in the Secret, unless they are those that are used already. It returns them.
func (o Options) once(ctx context.Context, used map[string][]byte) (map[string][]byte, error) {
	secret, err := o.Secrets.Get(ctx, v1beta1.DNSKeysSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && o.Make {
		secret, err = o.make(ctx)
	}
	if err != nil {
		return nil, err
	}
	if maps.EqualFunc(secret.Data, used, bytes.Equal) {
		return used, nil
	}
	signer, err := Signer(o.Zone, secret.Data)
	if err != nil {
		return nil, err
	}
	return secret.Data, o.Use(signer)
}

// make makes a key, unless another one was quicker.
func (o Options) make(ctx context.Context) (*corev1.Secret, error) {
	key, err := dnssec.NewKey(dnssec.ECDSAP256)
	if err != nil {
		return nil, err
	}
	text, err := key.Marshal()
	if err != nil {
		return nil, err
	}
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.DNSKeysSecret},
		Data:       map[string][]byte{signing: text},
	}
	secret, err := o.Secrets.Create(ctx, made, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return o.Secrets.Get(ctx, v1beta1.DNSKeysSecret, metav1.GetOptions{})
	}
	if err == nil {
		klog.InfoS("Made the key that signs the zone", "zone", o.Zone, "secret", klog.KObj(secret), "ds", key.DS(o.Zone).String())
	}
	return secret, err
}

// Signer reads the data of the Secret. The error names the entry, and has nothing of a key in it.
func Signer(zone string, data map[string][]byte) (*dnssec.Signer, error) {
	s := &dnssec.Signer{Zone: zone}
	if data[signing] == nil {
		return nil, fmt.Errorf("secret %s/%s: %s is missing: the key that signs", v1beta1.FederationNamespace, v1beta1.DNSKeysSecret, signing)
	}
	for _, entry := range slices.Sorted(maps.Keys(data)) {
		key, err := dnssec.ParseKey(data[entry])
		if err != nil {
			return nil, fmt.Errorf("secret %s/%s: %s: %w", v1beta1.FederationNamespace, v1beta1.DNSKeysSecret, entry, err)
		}
		if entry == signing {
			s.Key = key
		} else {
			s.More = append(s.More, key)
		}
	}
	return s, nil
}
