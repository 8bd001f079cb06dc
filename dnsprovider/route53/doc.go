// Package route53 keeps records in Amazon Route 53, public or private hosted zones, through AWS's SDK.
//
//	provider, err := route53.New(ctx, route53.Options{Region: "us-east-1"})
//
// The SDK finds credentials as it does everywhere: environment, shared files, web identity, the machine's role. The permissions
// that they need: route53:ListHostedZonesByName on all, and route53:ListResourceRecordSets and
// route53:ChangeResourceRecordSets on the hosted zone.
//
// A ChangeSet is one change batch: a transaction, in which an old set is a DELETE, which must match in every value, and a new
// one a CREATE, which must not exist. So Route 53 itself rejects stale changes. A batch takes 1,000 records and 32,000
// characters; for larger ones see package batch.
//
// The provider sends at most 5 requests a second, which Route 53 allows per account. The SDK's adaptive retries slow down
// further if others use that up. The API has the records when Apply returns; the name servers follow, usually within 60 s, and
// Apply does not wait for that.
//
// Record sets with a routing policy or an alias target belong to others: Records leaves them out, and Route 53 rejects a plain
// set of the same name.
//
// What was tested: everything against a server in this folder's tests that behaves as the API reference says. The real Route 53
// was not reached.
package route53
