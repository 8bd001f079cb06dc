// Package plan decides what a FailoverDrill does next.
//
//	step := plan.Next(drill, &plan.World{Now: now, Clusters: …, Objects: …})
//
// The step has the drill's next status and the Clusters to write. All state is in the drill and in the Clusters, so that
// another process continues where one has died:
//
//	Pending ──checks hold──▶ Baseline ──▶ Injecting ──in force──▶ Holding ──▶ Recovering ──undone──▶ Verifying ──▶ Finished
//	   └──deadline──▶ Finished, Blocked ◀──┘        └──guardrail──────┘ ▲
//
// What must be undone is stored (Injecting) before anything is changed, and any process can undo it. While a drill has a
// cluster out, the cluster's annotation drain has the drill's UID. Everything else treats the cluster as drained by somebody.
// A cluster without the UID belongs to whoever took it over; the drill leaves it alone.
//
// The package is pure: values in, values and reasons out.
package plan
