// Package plan decides what is said of the readiness of zones and regions, and which of them is looked at next.
//
//	domains := plan.Domains(clusters, levels)        // what there is to be ready for
//	i, wait := plan.Next(standings, now)             // whose loss is asked of next, or when to look again
//	status := plan.Status(before, loss, now, took)   // what a loss means, in numbers and a verdict
//
// What a loss would do is not found out here: that is controllers/review/plan. The package is pure.
package plan
