package limits

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Flags are the limits as flags of a command say them.
type Flags struct{ response, open, burst, rate, cache resource.QuantityValue }

// NewFlags returns those that apply unless others are given.
func NewFlags() Flags {
	size := func(s string) resource.QuantityValue { return resource.QuantityValue{Quantity: resource.MustParse(s)} }
	return Flags{response: size("128Mi"), open: size("256Mi"), burst: size("64Mi"), rate: size("16Mi"), cache: size("512Mi")}
}

// Add adds the flags.
func (l *Flags) Add(fs *pflag.FlagSet) {
	fs.Var(&l.response, "member-max-response-size", "bytes that one answer of a member cluster may have, after decompression; watches have no end. A cluster that goes over one of these limits is disconnected, with Ready=False and reason ClusterExceedsLimits, for a minute at first")
	fs.Var(&l.open, "member-max-open-responses-size", "bytes that all answers of a member cluster that are being read at the same time may have together")
	fs.Var(&l.burst, "member-max-burst-size", "bytes of answers and watches that are read from a member cluster without a pause")
	fs.Var(&l.rate, "member-max-receive-rate", "bytes that are read from it in a second after that. A cluster that has more to send for a minute is over the limit")
	fs.Var(&l.cache, "member-max-cache-size", "bytes that the caches of a member cluster's objects may take")
}

// Validate names the flag, its value and what is allowed.
func (l *Flags) Validate() error {
	var errs []error
	for flag, size := range map[string]resource.QuantityValue{
		"member-max-response-size": l.response, "member-max-open-responses-size": l.open, "member-max-burst-size": l.burst, "member-max-receive-rate": l.rate, "member-max-cache-size": l.cache,
	} {
		if size.Value() < 1<<20 || size.Value() > 1<<40 {
			errs = append(errs, fmt.Errorf("--%s %s: must be from 1Mi to 1Ti", flag, size.String()))
		}
	}
	return errors.Join(errs...)
}

// Limits returns the limits.
func (l *Flags) Limits() Limits {
	return Limits{Response: l.response.Value(), Open: l.open.Value(), Burst: l.burst.Value(), Rate: l.rate.Value(), Held: l.cache.Value()}
}
