package dnssec

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/miekg/dns"
)

// Algorithm is how a key signs (RFC 8624).
type Algorithm uint8

// The algorithms: the one that all resolvers know, and a faster one that nearly all know.
const (
	ECDSAP256 Algorithm = Algorithm(dns.ECDSAP256SHA256)
	Ed25519   Algorithm = Algorithm(dns.ED25519)
)

// KeyTTL is the time to live of the key records in seconds.
const KeyTTL = 3600

// csk are the flags of a key that signs everything, itself included: a zone key and an entry point.
const csk = dns.ZONE | dns.SEP

// Key is a pair of keys. Make it with NewKey or ParseKey.
type Key struct {
	Algorithm Algorithm
	private   crypto.Signer
	// public is as in a DNSKEY record.
	public string
}

// NewKey makes a key. It fails for another algorithm than those above.
func NewKey(a Algorithm) (Key, error) {
	for {
		private, err := generate(a)
		if err != nil {
			return Key{}, err
		}
		key, err := keyOf(private)
		if err != nil || key.Tag() != 0 { // a tag of 0 is taken for none by many tools
			return key, err
		}
	}
}

func generate(a Algorithm) (crypto.Signer, error) {
	switch a {
	case ECDSAP256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case Ed25519:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	}
	return nil, fmt.Errorf("DNSSEC algorithm %d: must be %d (ECDSA P-256) or %d (Ed25519)", a, ECDSAP256, Ed25519)
}

// keyOf makes a key of its private half. Public halves are as RFC 6605, section 4, and RFC 8080, section 3, say.
func keyOf(private any) (Key, error) {
	switch k := private.(type) {
	case *ecdsa.PrivateKey:
		point, err := k.PublicKey.Bytes()
		if err != nil || k.Curve != elliptic.P256() {
			return Key{}, errors.New("DNSSEC key: ECDSA must be on the curve P-256")
		}
		return Key{ECDSAP256, k, base64.StdEncoding.EncodeToString(point[1:])}, nil
	case ed25519.PrivateKey:
		return Key{Ed25519, k, base64.StdEncoding.EncodeToString(k.Public().(ed25519.PublicKey))}, nil
	}
	return Key{}, fmt.Errorf("DNSSEC key: %T: must be ECDSA or Ed25519", private)
}

// ParseKey reads a private key: PKCS #8 in PEM, as openssl writes it. The error has nothing of the key in it.
func ParseKey(text []byte) (Key, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return Key{}, errors.New(`DNSSEC key: must be PEM with a block "PRIVATE KEY" (PKCS #8)`)
	}
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, errors.New("DNSSEC key: must be a private key as PKCS #8")
	}
	return keyOf(private)
}

// Marshal returns the private key as ParseKey reads it.
func (k Key) Marshal() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// DNSKEY returns the record by which others check what the key has signed (RFC 4034, section 2).
func (k Key) DNSKEY(zone string) *dns.DNSKEY {
	return &dns.DNSKEY{Hdr: rrHeader(zone, dns.TypeDNSKEY, KeyTTL), Flags: csk, Protocol: 3, Algorithm: uint8(k.Algorithm), PublicKey: k.public}
}

// Tag returns the short number of the key (RFC 4034, appendix B).
func (k Key) Tag() uint16 { return k.DNSKEY(".").KeyTag() }

// DS returns the record for the parent zone, with SHA-256 (RFC 4509).
func (k Key) DS(zone string) *dns.DS { return k.DNSKEY(zone).ToDS(dns.SHA256) }

func rrHeader(name string, t uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: t, Class: dns.ClassINET, Ttl: ttl}
}
