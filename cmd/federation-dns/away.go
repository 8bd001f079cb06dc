package main

import (
	"context"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// askEvery is how often the federation is asked whether it is there, and how long its answer may take;
// awayAfter is how many looks in a row without an answer make it away.
const askEvery, awayAfter = 2 * time.Second, 2

// watchAway reports whether the federation is away, each time that this changes, until ctx ends.
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
				klog.ErrorS(err, "The federation is away: answers are from what was there last")
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

// askReady asks the federation's API whether it is ready.
func askReady(kube kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	}
}
