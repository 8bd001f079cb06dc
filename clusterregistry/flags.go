package clusterregistry

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"federation/clusterregistry/health"
)

// HealthCheckFlags are how the health of member clusters is checked, as flags of a command say it.
type HealthCheckFlags struct {
	Period, Timeout time.Duration
	Failures        int
}

// NewHealthCheckFlags returns those that apply unless others are given.
func NewHealthCheckFlags() HealthCheckFlags {
	p := health.DefaultPolicy()
	return HealthCheckFlags{Period: p.Period, Timeout: DefaultTimeout, Failures: p.Threshold}
}

// Add adds the flags.
func (l *HealthCheckFlags) Add(fs *pflag.FlagSet) {
	fs.DurationVar(&l.Period, "cluster-health-check-period", l.Period, "time between two health checks of each member cluster, one small request each")
	fs.DurationVar(&l.Timeout, "cluster-health-check-timeout", l.Timeout, "how long a member may take to answer a health check; make it longer than three round trips")
	fs.IntVar(&l.Failures, "cluster-health-check-failure-threshold", l.Failures, "failed health checks in a row after which a cluster is marked not ready; with 1, a lost packet changes DNS. A cluster that hangs is marked after about one period and as many timeouts")
}

// Validate names the flag, its value and what is allowed.
func (l *HealthCheckFlags) Validate() error {
	var errs []error
	for flag, value := range map[string]time.Duration{"--cluster-health-check-period": l.Period, "--cluster-health-check-timeout": l.Timeout} {
		if value < 100*time.Millisecond || value > 10*time.Minute {
			errs = append(errs, fmt.Errorf("%s %s: must be from 100ms to 10m", flag, value))
		}
	}
	if l.Failures < 1 || l.Failures > 100 {
		errs = append(errs, fmt.Errorf("--cluster-health-check-failure-threshold %d: must be from 1 to 100", l.Failures))
	}
	return errors.Join(errs...)
}

// Policy returns the policy of package health.
func (l *HealthCheckFlags) Policy() health.Policy {
	p := health.DefaultPolicy()
	p.Period, p.Retry, p.Threshold = l.Period, min(p.Retry, l.Period), l.Failures
	p.SlowThreshold = max(p.SlowThreshold, l.Failures)
	return p
}
