package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/pflag"

	"federation/hack/local/uplink"
)

// The main goroutine keeps the process's first thread, whose namespace is what /proc/PID/ns/net shows. Other
// goroutines are on threads that stay outside.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "internet: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dns := pflag.String("dns", "", "`ADDRESS` of a DNS server outside of the namespace, for those inside")
	api := pflag.String("api", "", "`ADDRESS` of an API server outside of the namespace, for those inside")
	dir := pflag.String("data-dir", "", "directory in which the file pid appears when it is up")
	pflag.Parse()
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return fmt.Errorf("a network namespace of its own: %w", err)
	}
	if err := uplink.MakeInternet(); err != nil {
		return err
	}
	if err := serveDNS(*dns); err != nil {
		return err
	}
	if err := serveAPI(*api); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(*dir, "pid"), fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	<-ctx.Done()
	return nil
}
