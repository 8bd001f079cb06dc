// Package plan decides what the drain of a cluster, or its undoing, does next (ADR 13, 135).
//
//	step := plan.Next(cluster, world)
//
//	         spec.drain                     Begin                       Evict                    Finish
//	Serving ───────────▶ weight 0 in DNS ──────────▶ Publishing, Expiring ────────▶ Evicting ──────────▶ Drained
//	   ▲                                                  │                           │                     │
//	   │ End: the weight as it was                        ▼ no spec.drain             ▼                     ▼
//	   └───────────────────────────────────────────── Returning ◀────────────────── Untaint ◀───────────────┘
//
// All that a drain needs to know is in the Cluster: its weight in DNS, its taints, and the annotation in which the drain records what it
// found and its last step. So another process goes on where it is, and the undoing restores what was there before.
package plan
