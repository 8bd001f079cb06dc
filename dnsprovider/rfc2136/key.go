package rfc2136

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
)

// Key is a secret that the server shares with us (RFC 8945).
type Key struct {
	// Name is the key's name, as the server has it.
	Name string
	// Algorithm is hmac-sha256, which is the default, hmac-sha384 or hmac-sha512.
	Algorithm string
	// Secret returns the secret in base64, as the servers' tools print it. It is called for each message, so that a new
	// secret is used without a restart.
	Secret func() (string, error)
}

var algorithms = map[string]func() hash.Hash{
	"": sha256.New, "hmac-sha256": sha256.New, "hmac-sha384": sha512.New384, "hmac-sha512": sha512.New,
}

// minSecret is how many bytes a secret has at least (RFC 8945, section 8, asks for the length of the
// hash; half of the shortest one is what the tools make).
const minSecret = 16

// fudge is how many seconds the clocks may be apart.
const fudge = 300

// signer signs messages and checks signatures. It is good for one exchange or transfer.
type signer struct {
	name, algorithm string
	hash            func() hash.Hash
	secret          []byte
}

// signer reads the key. No error has any of the secret in it.
func (k Key) signer() (*signer, error) {
	name, err := dnsprovider.CanonicalName(k.Name)
	if err != nil {
		return nil, fmt.Errorf("TSIG key: %w", err)
	}
	s := &signer{name: name, algorithm: k.Algorithm, hash: algorithms[k.Algorithm]}
	if s.hash == nil {
		return nil, fmt.Errorf("TSIG key %s: algorithm %q: must be hmac-sha256, hmac-sha384 or hmac-sha512", name, k.Algorithm)
	}
	if s.algorithm == "" {
		s.algorithm = "hmac-sha256"
	}
	text, err := k.Secret()
	if err != nil {
		return nil, fmt.Errorf("TSIG key %s: secret: %w", name, err)
	}
	s.secret, err = base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(s.secret) < minSecret {
		return nil, fmt.Errorf("TSIG key %s: secret: must be base64 of at least %d bytes", name, minSecret)
	}
	return s, nil
}

func (s *signer) sign(m *dns.Msg) {
	m.SetTsig(s.name, s.algorithm+".", fudge, time.Now().Unix())
}

// Generate makes the signature of a message.
func (s *signer) Generate(msg []byte, _ *dns.TSIG) ([]byte, error) {
	mac := hmac.New(s.hash, s.secret)
	mac.Write(msg) // never fails
	return mac.Sum(nil), nil
}

// Verify checks the signature of a message.
func (s *signer) Verify(msg []byte, t *dns.TSIG) error {
	want, err := s.Generate(msg, t)
	if err != nil {
		return err
	}
	got, err := hex.DecodeString(t.MAC)
	if err != nil || !strings.EqualFold(t.Hdr.Name, s.name) || !strings.EqualFold(t.Algorithm, s.algorithm+".") || !hmac.Equal(want, got) {
		return dns.ErrSig
	}
	return nil
}

// check verifies that the reply to m, which reading returned together with err, is signed and reports success. An error
// about our key, or about a zone that the server does not hold, may come without a valid signature: it is returned as
// an error in any case.
func (s *signer) check(m, reply *dns.Msg, err error) error {
	if reply == nil {
		return err
	}
	if reply.Id != m.Id {
		return errors.New("the answer is to another question")
	}
	t := reply.IsTsig()
	switch {
	case t != nil && t.Error != dns.RcodeSuccess:
		return fmt.Errorf("TSIG key %s (%s): %s", s.name, s.algorithm, tsigMeaning(t.Error))
	case reply.Rcode != dns.RcodeSuccess:
		return &rcodeError{reply.Rcode}
	case t == nil:
		return fmt.Errorf("the answer is not signed with the TSIG key %s: it is not trusted", s.name)
	}
	return err
}

func tsigMeaning(code uint16) string {
	switch code {
	case dns.RcodeBadSig:
		return "the server has another secret or algorithm (BADSIG)"
	case dns.RcodeBadKey:
		return "the server has no such key, or the key has no leave for this (BADKEY)"
	case dns.RcodeBadTime:
		return "the server's clock and ours are more than 5 minutes apart (BADTIME)"
	}
	return "the server answers " + dns.RcodeToString[int(code)]
}

// rcodeError is a server's refusal.
type rcodeError struct{ code int }

// isPrerequisite reports whether the zone is not as the message expected it (RFC 2136, section 3.2).
func (e *rcodeError) isPrerequisite() bool {
	return e.code == dns.RcodeNXRrset || e.code == dns.RcodeYXRrset || e.code == dns.RcodeNameError || e.code == dns.RcodeYXDomain
}

// Error has the name of the code and what it means here.
func (e *rcodeError) Error() string {
	meaning := map[int]string{
		dns.RcodeRefused:        "the key has no leave for it",
		dns.RcodeNotAuth:        "it is not the primary of such a zone, or the key has no leave for it",
		dns.RcodeNotZone:        "a name is not in the zone",
		dns.RcodeNotImplemented: "it takes no dynamic updates",
		dns.RcodeServerFailure:  "its log says why",
	}[e.code]
	if e.isPrerequisite() {
		meaning = "the zone was not as expected, and is again: try again"
	}
	if meaning == "" {
		return "the server answers " + dns.RcodeToString[e.code]
	}
	return fmt.Sprintf("the server answers %s: %s", dns.RcodeToString[e.code], meaning)
}
