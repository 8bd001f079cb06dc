package dnsprovider

import "context" //nolint:depguard // only for the interface: who waits for a server must be able to stop waiting

// Provider is a DNS server, or a service that runs some, in which records can be kept. It is safe
// for use by several goroutines.
type Provider interface {
	// Records returns what the zone holds, sorted by Compare, without the records that are the
	// server's own: SOA and NS at the apex, and the addresses of its name servers. It fails for a zone
	// that the provider does not hold.
	Records(ctx context.Context, zone string) ([]RRSet, error)

	// Apply makes all changes, or none if it fails. If there are more changes than the provider's protocol takes at once,
	// it makes some of the first ones and returns a PartialError. A ConflictError (errors.As) means that the zone is not
	// as the changes expect. A RefusedError means that the provider will never take one of them. Other errors are worth
	// another attempt later. No reader sees half of a Step. When Apply has returned without an error, the provider has the
	// records. When the context has ended, it may or may not have them.
	//
	// A caller that knows a zone in full calls Apply once after its start even if nothing changes: a provider without
	// persistent memory answers no questions before that.
	Apply(ctx context.Context, zone string, changes ChangeSet) error
}
