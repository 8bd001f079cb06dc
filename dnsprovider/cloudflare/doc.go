// Package cloudflare keeps records in Cloudflare's DNS through Cloudflare's SDK.
//
//	provider, err := cloudflare.New(cloudflare.Options{Token: readTokenFile})
//
// The token, by default that in the environment's CLOUDFLARE_API_TOKEN, takes the rights Zone:Read and
// DNS:Edit on the zone.
//
// Cloudflare knows single records and no sets: each has an ID and a TTL of its own. A ChangeSet is one
// call of the batch endpoint, which is one transaction, in Cloudflare's order: records that go, then
// those that only change their TTL, then those that come; what stays is not touched. Its name servers
// take each record for itself, so for a moment they may have some of a transaction and not yet the
// rest: that is Cloudflare's, and nothing can be done about it from here.
//
// The API deletes by ID and compares nothing, so the zone, or the names of a small change, are read
// before: see Blind in package batch. Proxied records, which somebody has made by hand, are shown as
// what stands in the zone, so that nothing is put beside them.
//
// TTLs are 60 s at least, 30 s in an Enterprise zone; smaller ones are raised. A batch takes 200
// records, in paid plans 3,500. Of requests Cloudflare takes 1,200 in 5 minutes; beyond that the SDK
// waits as long as the answer says.
//
// What was traded: the SDK's root package is not used, as it links all of Cloudflare's services; so
// fields of parameters are set by hand, without its helper F.
//
// What was tested: everything against a server in this folder's tests that behaves as the API
// reference says. The real Cloudflare was not reached.
package cloudflare
