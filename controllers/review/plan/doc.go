// Package plan says what would happen if clusters were lost or drained: the answer to a FailoverReview. It calls the same
// functions that would do it, with the clusters as they would be then.
//
//	in := plan.Input{Clusters: …, Policies: …, Info: …, Now: now}
//	in.AddObject(u)                    // each object with divided replicas
//	in.AddNamed(u)                     // each object with names in DNS
//	status, errs := plan.Review(in, spec)
//
// It decides only what can be affected: objects with replicas in these clusters, and those that may take room before them. The
// others are steady (placement's Steady): they stay as they are and take no room, so leaving them out changes nothing.
// Likewise it decides only the names of objects that have addresses in clusters that changed.
//
// The package is pure: values in, values and reasons out.
package plan
