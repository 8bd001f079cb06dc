package dnskeys

import (
	"time"

	"github.com/miekg/dns"

	"federation/controllers/dnskeys/plan"
)

// View is what people and programs are shown of the keys of a zone.
type View struct {
	Zone string    `json:"zone"`
	Keys []KeyView `json:"keys"`
	// ParentZone is Secure if the parent zone is seen to have the DS record of the signing key, None if it is seen to
	// have no DS record, else Unknown.
	ParentZone string `json:"parentZone"`
	Waits      string `json:"waits,omitempty"`
}

// KeyView is a key of a View.
type KeyView struct {
	Tag       uint16     `json:"tag"`
	Algorithm string     `json:"algorithm"`
	Phase     plan.Phase `json:"phase"`
	Since     time.Time  `json:"since"`
	// Submit is whether the parent zone must have its DS record.
	Submit bool   `json:"submit"`
	DS     string `json:"ds"`
}

// ViewOf returns the View of a ring.
func ViewOf(ring Ring) View {
	v := View{Zone: ring.Signer.Zone, ParentZone: "Unknown", Waits: ring.State.Waits}
	if !ring.State.ParentSince.IsZero() {
		v.ParentZone = "None"
		if ring.State.ParentSecure {
			v.ParentZone = "Secure"
		}
	}
	submit := map[uint16]bool{}
	for _, k := range ring.Signer.Submitted() {
		submit[k.Tag()] = true
	}
	for _, k := range ring.Signer.Keys() {
		one := KeyView{Tag: k.Tag(), Algorithm: dns.AlgorithmToString[uint8(k.Algorithm)], Submit: submit[k.Tag()], DS: k.DS(v.Zone).String()}
		for _, known := range ring.State.Keys {
			if known.Tag == one.Tag {
				one.Phase, one.Since = known.Phase, known.Since
			}
		}
		v.Keys = append(v.Keys, one)
	}
	return v
}
