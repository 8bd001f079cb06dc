package main

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// askEvery is the period of probing the federation, and the limit of each probe; awayAfter is how many failed probes in
// a row make it away.
const askEvery, awayAfter = 2 * time.Second, 2

// watchAway calls tell each time the federation goes away or comes back, until ctx ends.
func watchAway(ctx context.Context, ask func(context.Context) error, tell func(away bool)) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for missed := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, askEvery)
		err := ask(asking)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if missed++; missed == awayAfter {
				klog.ErrorS(err, "The federation is away: answers come from its last known state")
				tell(true)
			}
		default:
			if missed >= awayAfter {
				klog.InfoS("The federation is back")
				tell(false)
			}
			missed = 0
		}
	}
}

// askReady returns a probe of the readiness of the federation's API.
func askReady(kube kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	}
}
