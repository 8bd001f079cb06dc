package v1beta1

// DNSKeysSecret is a Secret in FederationNamespace with the keys that sign the federation's DNS zone.
const DNSKeysSecret = "dns-signing-keys"

// Annotations of DNSKeysSecret.
const (
	// DNSSECKeysAnnotation has, as JSON, where each of the keys stands. The federation writes it.
	DNSSECKeysAnnotation = "federation.kubernetes.io/dnssec-keys"
	// DNSSECKeyRolloverAnnotation, with any value, asks for a new key in the place of the one that signs. The federation takes it off
	// when it has begun.
	DNSSECKeyRolloverAnnotation = "federation.kubernetes.io/dnssec-key-rollover"
	// DNSSECParentDSAnnotation says which of the keys have DS records in the parent zone, where the federation cannot ask it: their
	// tags with commas between, or "none". What it says counts in the place of what is seen.
	DNSSECParentDSAnnotation = "federation.kubernetes.io/dnssec-parent-ds"
)
