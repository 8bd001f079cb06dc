// Package azuredns keeps records in Azure DNS, public zones, through Microsoft's SDK.
//
//	provider, err := azuredns.New(azuredns.Options{Subscription: id, ResourceGroup: "dns"})
//
// The SDK finds credentials as it does by default: environment, workload identity, managed identity, the az command's. The
// role that they need on the zone: "DNS Zone Contributor".
//
// Azure has no transactions: each record set is a request of its own. Requests are conditional (by ETag, or that there is no
// set yet), so a change by somebody else in between is a conflict. But of several names some may be changed and others not,
// and then Apply returns a PartialError (package batch).
//
// What cannot be kept here: a switch between addresses and CNAME deletes first and then creates, because Azure allows no CNAME
// beside anything, and a reader in between finds no name. That lasts for one request. A resolver that asks just then caches it
// for the zone's negative TTL, which is 300 s unless the SOA record says less. Set it low. If the second request fails, the
// old sets are restored.
//
// Ten names are changed at once. The SDK retries throttled and temporary failures, and waits as long as the answer says. The
// minimum TTL is 1 s.
//
// Sets of types other than A, AAAA, CNAME and TXT, and alias sets, belong to others: Records leaves them out, and Azure
// rejects a CNAME beside them.
//
// What was tested: everything against a server in this folder's tests that behaves as the API reference says. The real Azure
// was not reached. Private zones have another API, and are not supported.
package azuredns
