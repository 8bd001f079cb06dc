// Package drill runs FailoverDrills one at a time, the oldest first. plan.Next decides each step from the federation's own
// API. It asks no member, so a dead member blocks nothing.
//
// It runs in the leader. It only watches while no drill is pending or active; otherwise it runs a pass each second.
//
// Schedules creates drills at the times of FailoverDrillSchedules, as plan.NextOfSchedule decides.
package drill
