// Package plan decides what to report of the readiness of zones and regions, and which of them to evaluate next.
//
//	domains := plan.Domains(clusters, levels)        // the zones and regions
//	i, wait := plan.Next(standings, now)             // the one to evaluate now, or when to ask again
//	status := plan.Status(before, loss, now, took)   // the numbers and the verdict of a loss
//
// controllers/review/plan finds out what a loss would do. The package is pure.
package plan
