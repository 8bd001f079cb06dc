// Package clouddns keeps records in Google Cloud DNS, public or private zones, through Google's API client.
//
//	provider, err := clouddns.New(ctx, clouddns.Options{Project: "my-project"})
//
// Credentials are the application default ones: GOOGLE_APPLICATION_CREDENTIALS, workload identity, gcloud's, the machine's. The
// permissions that they need: dns.managedZones.list, dns.resourceRecordSets.* (list, create, update, delete) and
// dns.changes.create; the role roles/dns.admin has them all.
//
// A ChangeSet is one Change: a transaction, in which a deletion must match in every value and an addition must not exist. So
// Cloud DNS itself rejects stale changes. A Change takes 1,000 record sets each way and 100,000 bytes of data; for larger ones
// see package batch.
//
// Answers that say "too many" or "not now" are retried by Google's own means (gax), with backoff. The API has the records when
// Apply returns; the name servers follow, usually within a minute, and Apply does not wait for that.
//
// Record sets with a routing policy belong to others: Records leaves them out, and Cloud DNS rejects a plain set of the same
// name and type.
//
// What was tested: everything against a server in this folder's tests that behaves as the API reference says. The real Cloud
// DNS was not reached.
package clouddns
