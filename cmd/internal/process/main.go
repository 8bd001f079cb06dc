package process

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"federation/cmd/internal/logformat"
)

// Main runs a program until it ends by itself or by SIGTERM or SIGINT, and exits with code 1 if it fails.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root.ExecuteContext(ctx); err != nil {
		logformat.Fail(root.Name(), err)
		os.Exit(1)
	}
}
