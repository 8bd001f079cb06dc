// Package cloudflare keeps records in Cloudflare's DNS through Cloudflare's SDK.
//
//	provider, err := cloudflare.New(cloudflare.Options{Token: readTokenFile})
//
// The token, by default CLOUDFLARE_API_TOKEN in the environment, needs the permissions Zone:Read and DNS:Edit on the zone.
//
// Cloudflare has single records and no sets: each has its own ID and TTL. A ChangeSet is one call of the batch endpoint, which
// is one transaction, in Cloudflare's order: deletions, then changes of TTL only, then additions; unchanged records are not
// touched. Its name servers take each record separately, so for a moment they may have some of a transaction and not yet the
// rest. That cannot be avoided from here.
//
// The API deletes by ID and compares nothing, so the zone, or the names of a small change, are read before: see Blind in
// package batch. Proxied records, which somebody has made by hand, are shown as they are in the zone, so that nothing is put
// beside them.
//
// The minimum TTL is 60 s, 30 s in an Enterprise zone; smaller ones are raised. A batch takes 200 records, in paid plans 3,500.
// Cloudflare allows 1,200 requests in 5 minutes; beyond that the SDK waits as long as the answer says.
//
// What was traded: the SDK's root package is not used, because it links all of Cloudflare's services; so fields of parameters
// are set by hand, without its helper F.
//
// What was tested: everything against a server in this folder's tests that behaves as the API reference says. The real
// Cloudflare was not reached.
package cloudflare
