package v1beta1

// DNSKeysSecret is a Secret in FederationNamespace with the keys that sign the federation's DNS zone.
const DNSKeysSecret = "dns-signing-keys"

// Annotations of DNSKeysSecret.
const (
	// DNSSECKeysAnnotation has, as JSON, the phase of each key. The federation writes it.
	DNSSECKeysAnnotation = "federation.kubernetes.io/dnssec-keys"
	// DNSSECKeyRolloverAnnotation, with any value, requests a new key in place of the one that signs. The federation
	// removes it when it has begun.
	DNSSECKeyRolloverAnnotation = "federation.kubernetes.io/dnssec-key-rollover"
	// DNSSECParentDSAnnotation says which of the keys have DS records in the parent zone, if the federation cannot
	// query it: their tags separated by commas, or "none". It takes precedence over what is seen.
	DNSSECParentDSAnnotation = "federation.kubernetes.io/dnssec-parent-ds"
)
