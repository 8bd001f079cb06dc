// Package drill runs FailoverDrills: one at a time, the oldest first. What is to be done plan.Next decides, from the federation's own API
// alone: no member is asked, so that a dead one holds nothing up.
//
// It runs where the federation decides, in the leader. While no drill waits or is under way it only watches; otherwise it looks each second.
//
// Schedules makes drills at the times of FailoverDrillSchedules, as plan.NextOfSchedule decides.
package drill
