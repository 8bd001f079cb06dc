package v1beta1

// DNSKeysSecret is a Secret in FederationNamespace with the keys that sign the federation's DNS zone.
const DNSKeysSecret = "dns-signing-keys"
