// Package drillschedule stores FailoverDrillSchedules. The drills of one are theirs who made it, or last changed what it makes.
package drillschedule
