package plan

import (
	"fmt"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// Settings tune failover. Start from DefaultSettings.
type Settings struct {
	// GracePeriod is how long a cluster may be away before its replicas are placed elsewhere.
	GracePeriod time.Duration
	// Window is the time within which the loss of a majority counts as one event: the federation itself is cut off.
	Window time.Duration
	// MaxZones is how many zones' worth of clusters may be failed over at once. 0 means none: failover is off. Below 0
	// means no limit. A cluster in several zones, or in no known zone, counts as a zone of its own.
	MaxZones int
	// HoldDown is how long replicas that were moved off a cluster stay away at least, counted from the move. A flapping
	// cluster thus causes one move in that time, whatever its pattern.
	HoldDown time.Duration
	// Stable is how long a returned cluster must be ready before it gets its first share, and between two shares. 0
	// means it gets everything at once.
	Stable time.Duration
	// Steps are the shares that it gets, in percent, rising to 100.
	Steps []int32
	// Seen is since when this process has been watching clusters. Earlier writes count, but no period ends by time that
	// nobody watched.
	Seen time.Time
	// Probes are this process's latest probes by cluster. Nothing is moved off a cluster against them, or without one
	// that is at most ProbeAge old. Nil means that this process does not probe and believes what is written.
	Probes   map[string]Probe
	ProbeAge time.Duration
	// Others are the statements of the federation's other live processes, by process; empty if there is one process.
	// Nil means that this process does not ask and believes what is written.
	Others map[string]Statement
}

// Probe is the result of the latest probe of a cluster's API.
type Probe struct {
	At      time.Time
	Healthy bool
	// LostSince is since when this process judges the cluster not ready, whether or not that could be written. Zero
	// while it judges it ready.
	LostSince time.Time
	// Unclear means that the answer says nothing about the cluster's workloads, or that nobody asked.
	Unclear bool
}

// DefaultSettings returns settings for clusters in zones of their own.
func DefaultSettings() Settings {
	return Settings{
		GracePeriod: 30 * time.Second, Window: time.Minute, MaxZones: 1,
		HoldDown: 10 * time.Minute, Stable: time.Minute, Steps: []int32{10, 50, 100}, ProbeAge: 5 * time.Second,
	}
}

// SettingsOf returns a federation's settings as far as it publishes them: enough to decide what is suspended and who is
// cut off.
func SettingsOf(info v1beta1.Info) Settings {
	s := DefaultSettings()
	s.MaxZones = info.FailoverMaxZones
	if info.FailoverWindow > 0 {
		s.Window = info.FailoverWindow
	}
	return s
}

// Validate returns an error that names the setting, its value and what is allowed.
func (s Settings) Validate() error {
	switch {
	case s.GracePeriod <= 0:
		return fmt.Errorf("grace period %s: must be more than 0", s.GracePeriod)
	case s.Window <= 0:
		return fmt.Errorf("window %s: must be more than 0", s.Window)
	case s.HoldDown < 0:
		return fmt.Errorf("hold-down %s: must not be negative", s.HoldDown)
	case s.Stable < 0:
		return fmt.Errorf("stable period %s: must not be negative", s.Stable)
	case len(s.Steps) == 0 || s.Steps[len(s.Steps)-1] != 100 || s.Steps[0] < 1:
		return fmt.Errorf("failback steps %v: must be percentages from 1 that rise to 100", s.Steps)
	}
	if !slices.IsSorted(s.Steps) || len(slices.Compact(slices.Clone(s.Steps))) != len(s.Steps) {
		return fmt.Errorf("failback steps %v: each must be more than the one before", s.Steps)
	}
	return nil
}

// nextStep returns the share after percent.
func (s Settings) nextStep(percent int32) int32 {
	for _, next := range s.Steps {
		if next > percent && s.Stable > 0 {
			return next
		}
	}
	return 100
}
