package dnskeys

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/dnskeys/plan"
	"federation/dnsprovider/dnssec"
)

// signing is the entry with the signing key.
const signing = "signing.pem"

// Ring is the parsed Secret with the keys.
type Ring struct {
	// Signer signs with the keys.
	Signer *dnssec.Signer
	// State is the keys' state. It has no Keys before the first rollover.
	State plan.State
}

// Read parses the Secret. The error names the entry, and contains nothing of a key.
func Read(zone string, secret *corev1.Secret) (r Ring, err error) {
	if r.Signer, err = newSigner(zone, secret.Data); err != nil {
		return r, fmt.Errorf("secret %s/%s: %w", v1beta1.FederationNamespace, v1beta1.DNSKeysSecret, err)
	}
	text := secret.Annotations[v1beta1.DNSSECKeysAnnotation]
	if text == "" {
		return r, nil
	}
	if err := json.Unmarshal([]byte(text), &r.State); err != nil {
		return r, fmt.Errorf("secret %s/%s: annotation %s: %w", v1beta1.FederationNamespace, v1beta1.DNSKeysSecret, v1beta1.DNSSECKeysAnnotation, err)
	}
	r.Signer.Submit = append([]uint16{}, r.State.Submit...) // none, which differs from all
	return r, nil
}

func newSigner(zone string, data map[string][]byte) (*dnssec.Signer, error) {
	s := &dnssec.Signer{Zone: zone}
	if data[signing] == nil {
		return nil, fmt.Errorf("%s is missing: the key that signs", signing)
	}
	tags := map[uint16]string{}
	for _, entry := range slices.Sorted(maps.Keys(data)) {
		key, err := dnssec.ParseKey(data[entry])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry, err)
		}
		if other := tags[key.Tag()]; other != "" {
			return nil, fmt.Errorf("%s: has the tag %d, as %s has", entry, key.Tag(), other)
		}
		tags[key.Tag()] = entry
		if entry == signing {
			s.Key = key
		} else {
			s.More = append(s.More, key)
		}
	}
	return s, nil
}

// adoptedState returns the state with the existing keys.
func (r Ring) adoptedState(now time.Time) plan.State {
	more := []uint16{}
	for _, k := range r.Signer.More {
		more = append(more, k.Tag())
	}
	return plan.Adopt(r.State, r.Signer.Key.Tag(), more, now)
}

// putState writes the keys and the state into the Secret.
func putState(secret *corev1.Secret, s plan.State, keys []dnssec.Key) error {
	secret.Data = map[string][]byte{}
	for _, k := range keys {
		i := slices.IndexFunc(s.Keys, func(known plan.Key) bool { return known.Tag == k.Tag() })
		if i < 0 {
			continue // it is gone
		}
		entry := strconv.Itoa(int(k.Tag())) + ".pem"
		if s.Keys[i].Phase == plan.Active {
			entry = signing
		}
		text, err := k.Marshal()
		if err != nil {
			return err
		}
		secret.Data[entry] = text
	}
	state, err := json.Marshal(s)
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, v1beta1.DNSSECKeysAnnotation, string(state))
	return err
}

// makeKey creates a key with a unique tag.
func makeKey(a dnssec.Algorithm, others []dnssec.Key) (dnssec.Key, error) {
	for {
		key, err := dnssec.NewKey(a)
		if err != nil || !slices.ContainsFunc(others, func(k dnssec.Key) bool { return k.Tag() == key.Tag() }) {
			return key, err
		}
	}
}

// confirmedParent returns what people say that the parent zone has, or nil.
func confirmedParent(secret *corev1.Secret) (*plan.Parent, error) {
	text := secret.Annotations[v1beta1.DNSSECParentDSAnnotation]
	if text == "" {
		return nil, nil
	}
	p := &plan.Parent{}
	if text == "none" {
		return p, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		tag, err := strconv.ParseUint(strings.TrimSpace(word), 10, 16)
		if err != nil {
			return nil, errors.New(v1beta1.DNSSECParentDSAnnotation + " " + strconv.Quote(text) + `: must be tags of keys (0 to 65535) with commas between, or "none"`)
		}
		p.Any = append(p.Any, uint16(tag))
	}
	p.All = p.Any
	return p, nil
}
