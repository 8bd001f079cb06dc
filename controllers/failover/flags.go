package failover

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"federation/controllers/failover/plan"
)

// Flags are the settings as flags of a command say them: when what clusters hold is placed elsewhere, and how it comes back.
type Flags struct{ Settings plan.Settings }

// NewFlags returns the settings that apply unless others are given.
func NewFlags() Flags { return Flags{plan.DefaultSettings()} }

// Add adds the flags.
func (f *Flags) Add(fs *pflag.FlagSet) {
	s := &f.Settings
	fs.DurationVar(&s.GracePeriod, "cluster-grace-period", s.GracePeriod, "how long a cluster may be away before its replicas are placed elsewhere; DNS does not wait for it")
	fs.IntVar(&s.MaxZones, "failover-max-zones", s.MaxZones, "how many zones' worth of clusters may be failed over at once; for more, failover is suspended. 0 fails nothing over; -1 is no limit")
	fs.DurationVar(&s.Window, "failover-window", s.Window, "if a majority of the clusters is lost within this time, it is taken for our own network: nothing is moved until enough are back")
	fs.DurationVar(&s.HoldDown, "failback-hold-down", s.HoldDown, "how long what was moved off a cluster stays away at least, so that one that comes and goes moves nothing more in that time; 0 waits for the stable period only")
	fs.DurationVar(&s.Stable, "failback-stable-period", s.Stable, "how long a cluster that returned must be ready before it gets back a first share, and between two shares; 0 gives it all at once")
	fs.Int32SliceVar(&s.Steps, "failback-steps", s.Steps, "the shares that a cluster that returned gets back, in `PERCENT`, rising to 100")
}

// Validate names the flag, its value and what is allowed.
func (f *Flags) Validate() error {
	s := f.Settings
	var errs []error
	for flag, value := range map[string]time.Duration{"--cluster-grace-period": s.GracePeriod, "--failover-window": s.Window} {
		if value <= 0 || value > 24*time.Hour {
			errs = append(errs, fmt.Errorf("%s %s: must be more than 0 and at most 24h", flag, value))
		}
	}
	if s.MaxZones < -1 {
		errs = append(errs, fmt.Errorf("--failover-max-zones %d: must be a number of zones, 0 for no failover, or -1 for no limit", s.MaxZones))
	}
	for flag, value := range map[string]time.Duration{"--failback-hold-down": s.HoldDown, "--failback-stable-period": s.Stable} {
		if value < 0 || value > 24*time.Hour {
			errs = append(errs, fmt.Errorf("%s %s: must be from 0 to 24h", flag, value))
		}
	}
	rising := slices.IsSorted(s.Steps) && len(slices.Compact(slices.Clone(s.Steps))) == len(s.Steps)
	if len(s.Steps) == 0 || s.Steps[0] < 1 || s.Steps[len(s.Steps)-1] != 100 || !rising {
		errs = append(errs, fmt.Errorf("--failback-steps %v: must be percentages from 1 that rise to 100, such as 10,50,100", s.Steps))
	}
	return errors.Join(errs...)
}
