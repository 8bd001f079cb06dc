package main

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"federation/clusterregistry"
	"federation/clusterregistry/health"
)

// looks say how member clusters are watched over.
type looks struct {
	period, timeout time.Duration
	failures        int
}

func newLooks() looks {
	p := health.DefaultPolicy()
	return looks{period: p.Period, timeout: clusterregistry.DefaultTimeout, failures: p.Threshold}
}

func (l *looks) addFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&l.period, "cluster-look-period", l.period, "time between two looks at the health of each member cluster, one small request each")
	fs.DurationVar(&l.timeout, "cluster-look-timeout", l.timeout, "how long a member may take to answer a look; longer than the way there and back three times")
	fs.IntVar(&l.failures, "cluster-look-failures", l.failures, "looks in a row that must fail before a cluster is marked as not ready: with 1 a lost packet moves names; one that hangs is marked after about a period and as many timeouts")
}

// validate names the flag, its value and what is allowed.
func (l *looks) validate() error {
	for flag, value := range map[string]time.Duration{"--cluster-look-period": l.period, "--cluster-look-timeout": l.timeout} {
		if value < 100*time.Millisecond || value > 10*time.Minute {
			return fmt.Errorf("%s %s: must be from 100ms to 10m", flag, value)
		}
	}
	if l.failures < 1 || l.failures > 100 {
		return fmt.Errorf("--cluster-look-failures %d: must be from 1 to 100", l.failures)
	}
	return nil
}

func (l *looks) policy() health.Policy {
	p := health.DefaultPolicy()
	p.Period, p.Retry, p.Threshold = l.period, min(p.Retry, l.period), l.failures
	p.SlowThreshold = max(p.SlowThreshold, l.failures)
	return p
}
