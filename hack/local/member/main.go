package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// gcPercent trades a little CPU for a third less memory: many members share one machine.
const gcPercent = 40

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "member: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	unlock, err := o.enterDataDir()
	if err != nil {
		return err
	}
	defer unlock()
	c := &cluster{Options: o}
	if err := c.start(ctx); err != nil {
		return err
	}
	fmt.Printf("member %s is up at %s, kubeconfig %s\n", o.Name, o.url(), o.Kubeconfig)
	select {
	case <-ctx.Done():
	case err = <-c.failed:
	}
	c.stop(5 * time.Second)
	return err
}
