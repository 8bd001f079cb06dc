// Package azuredns keeps records in Azure DNS, public zones, through Microsoft's SDK.
//
//	provider, err := azuredns.New(azuredns.Options{Subscription: id, ResourceGroup: "dns"})
//
// Credentials are found as the SDK does by default: environment, workload identity, managed identity,
// the az command's. The role that it takes on the zone: "DNS Zone Contributor".
//
// Azure has no transactions: each record set is a request of its own. Requests are conditional (by
// ETag, or that there is no set yet), so what somebody has changed meanwhile is refused; but of
// several names some may be made and others not, and then Apply fails and says so (package batch).
//
// What cannot be kept here: a switch between addresses and CNAME deletes first and then creates, as
// Azure takes no CNAME beside anything, and a reader in between finds no name. That lasts as long as
// one request; a resolver that asks just then remembers it for the zone's negative TTL, which is
// 300 s unless the SOA record says less. Set it low. If the second request fails, the old sets are
// put back.
//
// Ten names are changed at once. The SDK tries again what was too much or passes, and waits as long as
// the answer says. TTL is at least 1 s.
//
// Sets of other types than A, AAAA, CNAME and TXT, and alias sets, are others': Records leaves them
// out, and Azure refuses a CNAME beside them.
//
// What was tested: everything against a server in this folder's tests that behaves as the API
// reference says. The real Azure was not reached. Private zones have another API, and are not
// supported.
package azuredns
