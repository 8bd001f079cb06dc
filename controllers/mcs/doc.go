// Package mcs serves the Multi-Cluster Services API (KEP-1645): what is exported in one member by a ServiceExport is imported into
// all that have the namespace, as a ServiceImport, with a derived Service and EndpointSlices.
//
//	c, err := mcs.New(mcs.Options{Client: client, Informers: informers, Federation: uid, …})
//	err = c.Engage(ctx, mcs.Member{…})  // for each member that is reached
//	err = c.Run(ctx)
//
// All that counts is in members: their ServiceExports, which users write there. Those that are written at the federation are copied
// to the members that have a copy of their Service. Package plan decides what comes of them. Each member has a queue of Services;
// its worker reads the caches of all members, asks plan.Decide, and writes what differs. What is known of a member outlives the
// connection: while it is lost, others keep its endpoints, not ready. A process that has never seen a member leaves alone what others
// have of it.
//
// Services and EndpointSlices that users export are none of the federation's, so its caches have them only of namespaces in which
// something is exported (ADR 138).
package mcs
