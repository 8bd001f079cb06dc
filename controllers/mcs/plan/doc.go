// Package plan decides what comes of the exports of one Service (KEP-1645): the ServiceImport, the derived Service and the
// EndpointSlices that a member is to have, and the conditions of its export. It is pure.
//
// All that clusters export under one namespace and name is one Service. Merge makes it of the exports: where they differ, the
// oldest decides, and each of them gets the condition Conflict. Decide compares what a member is to have with what it has.
//
// What a cluster exports is that cluster's word, and counts for itself: an export that is malformed gets Valid=False and is left out, its
// addresses and names are parsed, and how much of it others get is bounded.
//
// A cluster's endpoints are ready as it says itself, as long as no other cluster has a better rank: serving, then drained, then
// lost. So endpoints never go out of use only because the federation cannot see their cluster (fail static). Of a cluster of which
// nothing is known, as after a restart, members keep what they have.
package plan
