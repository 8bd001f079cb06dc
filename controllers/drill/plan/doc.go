// Package plan decides what a FailoverDrill does next.
//
//	step := plan.Next(drill, &plan.World{Now: now, Clusters: …, Objects: …})
//
// The step has the drill's next status, and Clusters as they are to be written. All that is remembered is in the drill and in the Clusters, so
// that another process goes on where one has died:
//
//	Pending ──checks hold──▶ Baseline ──▶ Injecting ──in force──▶ Holding ──▶ Recovering ──undone──▶ Verifying ──▶ Finished
//	   └──deadline──▶ Finished, Blocked ◀──┘        └──guardrail──────┘ ▲
//
// What is to be undone is stored (Injecting) before anything is changed, and undone by whoever finds it. A cluster bears its drill's UID in
// its annotation drain while it is taken out: it looks to all else as one that somebody drains, and what bears the UID no more belongs to
// whoever took it over, and is left to them.
//
// The package is pure: values in, values and reasons out.
package plan
