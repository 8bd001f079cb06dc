// Package failover decides when workloads of a lost cluster are placed elsewhere, and when they come back. It is the only
// writer of Cluster.status.failover and of the conditions FailedOver and FailoverSuspended; placement acts on them.
//
//	c, err := failover.New(failover.Options{Client: …, Informers: …, Recorder: …, Settings: plan.DefaultSettings()})
//	err = c.Run(ctx)
//
// Package plan decides. The controller asks it at each change of a Cluster and when a period ends, and writes what changed:
// at most one write per cluster, by server-side apply, which leaves the registry's conditions alone.
//
// What was traded: each change of one cluster judges all clusters (about 1 µs each), because whether one fails over depends
// on the others. In return the controller remembers nothing that is not in the Clusters.
package failover
