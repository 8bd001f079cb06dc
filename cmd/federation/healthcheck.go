package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"federation/clusterregistry"
	"federation/clusterregistry/health"
)

// healthCheck says how the health of member clusters is checked.
type healthCheck struct {
	period, timeout time.Duration
	failures        int
}

func newHealthCheck() healthCheck {
	p := health.DefaultPolicy()
	return healthCheck{period: p.Period, timeout: clusterregistry.DefaultTimeout, failures: p.Threshold}
}

func (l *healthCheck) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&l.period, "cluster-health-check-period", l.period, "time between two health checks of each member cluster, one small request each")
	fs.DurationVar(&l.timeout, "cluster-health-check-timeout", l.timeout, "how long a member may take to answer a health check; make it longer than three round trips")
	fs.IntVar(&l.failures, "cluster-health-check-failure-threshold", l.failures, "failed health checks in a row after which a cluster is marked not ready; with 1, a lost packet changes DNS. A cluster that hangs is marked after about one period and as many timeouts")
}

// validate names the flag, its value and what is allowed.
func (l *healthCheck) validate() error {
	for flag, value := range map[string]time.Duration{"--cluster-health-check-period": l.period, "--cluster-health-check-timeout": l.timeout} {
		if value < 100*time.Millisecond || value > 10*time.Minute {
			return fmt.Errorf("%s %s: must be from 100ms to 10m", flag, value)
		}
	}
	if l.failures < 1 || l.failures > 100 {
		return fmt.Errorf("--cluster-health-check-failure-threshold %d: must be from 1 to 100", l.failures)
	}
	return nil
}

func (l *healthCheck) policy() health.Policy {
	p := health.DefaultPolicy()
	p.Period, p.Retry, p.Threshold = l.period, min(p.Retry, l.period), l.failures
	p.SlowThreshold = max(p.SlowThreshold, l.failures)
	return p
}
