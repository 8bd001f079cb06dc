package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"federation/clusterregistry/limits"
)

// memberLimits bound what each member cluster can make this process read and hold.
type memberLimits struct{ response, open, burst, rate, cache resource.QuantityValue }

func newMemberLimits() memberLimits {
	size := func(s string) resource.QuantityValue { return resource.QuantityValue{Quantity: resource.MustParse(s)} }
	return memberLimits{response: size("128Mi"), open: size("256Mi"), burst: size("64Mi"), rate: size("16Mi"), cache: size("512Mi")}
}

func (l *memberLimits) addFlags(fs *pflag.FlagSet) {
	fs.Var(&l.response, "member-max-response-size", "bytes that one answer of a member cluster may have, after decompression; watches have no end. A cluster that goes over one of these limits is disconnected, with Ready=False and reason ClusterExceedsLimits, for a minute at first")
	fs.Var(&l.open, "member-max-open-responses-size", "bytes that all answers of a member cluster that are being read at the same time may have together")
	fs.Var(&l.burst, "member-max-burst-size", "bytes of answers and watches that are read from a member cluster without a pause")
	fs.Var(&l.rate, "member-max-receive-rate", "bytes that are read from it in a second after that. A cluster that has more to send for a minute is over the limit")
	fs.Var(&l.cache, "member-max-cache-size", "bytes that the caches of a member cluster's objects may take")
}

// validate names the flag, its value and what is allowed.
func (l *memberLimits) validate() error {
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

func (l *memberLimits) limits() limits.Limits {
	return limits.Limits{Response: l.response.Value(), Open: l.open.Value(), Burst: l.burst.Value(), Rate: l.rate.Value(), Held: l.cache.Value()}
}
