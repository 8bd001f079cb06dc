package plan

import (
	"fmt"
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// Settings say how patient and how bold failover is. Take DefaultSettings and change what you need.
type Settings struct {
	// GracePeriod is how long a cluster may be away before what it has is placed elsewhere.
	GracePeriod time.Duration
	// Window is the time within which the loss of a majority is taken for one event: our own.
	Window time.Duration
	// MaxZones is how many zones' worth of clusters may be out at once. 0: none, nothing is ever failed
	// over. Below 0: no limit. A cluster in several zones, or in none that is known, is a zone of its own.
	MaxZones int
	// HoldDown is how long what was moved off a cluster stays away at least, counted from the move: so a cluster that comes and
	// goes causes one move in that time, whatever its pattern.
	HoldDown time.Duration
	// Stable is how long a cluster that has returned must be ready before it gets the first share, and
	// between two shares. 0: it gets all at once.
	Stable time.Duration
	// Steps are the shares that it gets, in percent, rising to 100.
	Steps []int32
	// Seen is since when this process has been looking at clusters. What was written before counts, but no
	// period of time is over on the strength of time that nobody was there to see.
	Seen time.Time
	// Probes are the latest probes of clusters that this process knows of. Nothing is moved off a cluster against them, nor without
	// one that is not older than ProbeAge. nil: nobody probes here, and what is written is believed.
	Probes   map[string]Probe
	ProbeAge time.Duration
	// Others are what the other processes of the federation that live say, by process; none where there is one. nil: nobody asks them here, and
	// what is written of it is believed.
	Others map[string]Statement
}

// Probe is what the latest probe of a cluster's API found.
type Probe struct {
	At      time.Time
	Healthy bool
	// LostSince is since when this process judges the cluster not ready, whether that could be written or not; zero while it judges it ready.
	LostSince time.Time
	// Unclear: something answered that says nothing about what runs there, or nobody asked.
	Unclear bool
}

// DefaultSettings are for clusters in zones of their own.
func DefaultSettings() Settings {
	return Settings{
		GracePeriod: 30 * time.Second, Window: time.Minute, MaxZones: 1,
		HoldDown: 10 * time.Minute, Stable: time.Minute, Steps: []int32{10, 50, 100}, ProbeAge: 5 * time.Second,
	}
}

// SettingsOf are the settings of a federation, as far as it publishes them: what is held, and who is cut off, follows
// from these.
func SettingsOf(info v1beta1.Info) Settings {
	s := DefaultSettings()
	s.MaxZones = info.FailoverMaxZones
	if info.FailoverWindow > 0 {
		s.Window = info.FailoverWindow
	}
	return s
}

// Validate names the setting, its value and what is allowed.
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

// step is the share after percent.
func (s Settings) step(percent int32) int32 {
	for _, next := range s.Steps {
		if next > percent && s.Stable > 0 {
			return next
		}
	}
	return 100
}
