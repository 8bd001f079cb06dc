package v1beta1

// DNSKeysSecret is a Secret in FederationNamespace with the keys that sign the federation's DNS zone.
const DNSKeysSecret = "dns-signing-keys"

// Annotations of DNSKeysSecret.
const (
	// DNSKeysAnnotation has, as JSON, where each of the keys stands. The federation writes it.
	DNSKeysAnnotation = "federation.kubernetes.io/dns-keys"
	// DNSKeyRollAnnotation, with any value, asks for a new key in the place of the one that signs. The federation takes it off
	// when it has begun.
	DNSKeyRollAnnotation = "federation.kubernetes.io/dns-key-roll"
	// DNSParentAnnotation says which of the keys have DS records in the zone above, where the federation cannot ask it: their
	// tags with commas between, or "none". What it says counts in the place of what is seen.
	DNSParentAnnotation = "federation.kubernetes.io/dns-zone-above"
)
