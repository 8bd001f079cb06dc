// Package failover decides when what is placed on a cluster that is lost goes elsewhere, and when it comes back. It is the
// only writer of Cluster.status.failover and of the conditions FailedOver and FailoverSuspended; placement acts on them.
//
//	c, err := failover.New(failover.Options{Client: …, Informers: …, Recorder: …, Settings: plan.DefaultSettings()})
//	err = c.Run(ctx)
//
// The decision is package plan's. This one asks it whenever a Cluster changes and when time is over, and writes what
// changed: at most one write a cluster, by server-side apply, so that the registry's conditions are left alone.
//
// What was traded: all clusters are weighed at each change of one (some 1 µs each), because whether one goes out
// depends on the others; in return nothing is remembered here that is not in the Clusters.
package failover
