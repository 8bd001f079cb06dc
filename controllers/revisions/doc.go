// Package revisions keeps at the federation what kubectl and Helm look for beside a workload: a ReplicaSet for each of a Deployment's
// templates, a ControllerRevision for each of a StatefulSet's or DaemonSet's (ADR 126).
//
//	c, err := revisions.New(revisions.Options{Client: client, Informers: federated, Kept: kept})
//	err = c.Run(ctx)  // in one process at a time
//
// Nothing runs by them: no cluster gets any, and members' own controllers have their own. Which there are to be, package plan decides. The garbage
// collector deletes them with their workload; one that has lost its owner goes as well.
package revisions
