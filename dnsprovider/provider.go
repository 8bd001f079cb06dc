package dnsprovider

import "context" //nolint:depguard // only for the interface: who waits for a server must be able to stop waiting

// Provider is a DNS server, or a service that runs some, in which records can be kept. It is safe
// for use by several goroutines.
type Provider interface {
	// Records returns what the zone holds, sorted by Compare, without the records that are the
	// server's own: SOA and NS at the apex, and the addresses of its name servers. It fails for a zone
	// that the provider does not hold.
	Records(ctx context.Context, zone string) ([]RRSet, error)

	// Apply makes all changes, or none when it fails. Of more changes than the provider's protocol
	// takes at once it makes the first, as many as it says, when it fails. A ConflictError (errors.As)
	// means that the zone is not as the changes expect it; a RefusedError, that the provider does not
	// take one of them, whenever it is asked; other errors are worth another attempt later. No reader sees half of a Step, and when Apply has returned without an error the provider
	// has the records. When the context has ended they may or may not be there.
	//
	// A caller that knows a zone in full calls Apply even when nothing changes, once after its start:
	// a provider without a memory of its own answers no questions before that.
	Apply(ctx context.Context, zone string, changes ChangeSet) error
}
