// Package drillschedule stores FailoverDrillSchedules. Drills of a schedule belong to whoever created it, or last
// changed what it makes.
package drillschedule
