package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "local: error: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var root, bin string
	var s *stack
	cmd := &cobra.Command{
		Use:           "local",
		Short:         "A federation with real member clusters on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) (err error) {
			s, err = newStack(root, bin)
			return err
		},
	}
	cmd.PersistentFlags().StringVar(&root, "root", "_output/local", "directory that holds all that runs")
	cmd.PersistentFlags().StringVar(&bin, "bin", "_output/bin", "directory of the programs")
	cmd.AddCommand(upCommand(&s),
		&cobra.Command{Use: "down", Short: "End all that up started, and remove its data", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return s.down(cmd.Context()) }},
		&cobra.Command{Use: "agents", Short: "Start the agents of members in pull mode that do not run, or whose Cluster was made again", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return s.agents(cmd.Context()) }},
		&cobra.Command{Use: "status", Short: "Say what runs", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return s.status() }})
	return cmd
}

func upCommand(s **stack) *cobra.Command {
	o := upOptions{}
	cmd := &cobra.Command{
		Use: "up", Short: "Start what does not run, and wait until all is ready", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return (*s).up(cmd.Context(), o) },
	}
	cmd.Flags().IntVar(&o.clusters, "clusters", 3, "number of member clusters; never takes away one that is there")
	cmd.Flags().IntVar(&o.nodes, "nodes", 3, "nodes in each member that is started")
	cmd.Flags().BoolVar(&o.real, "real", false, "with real nodes and pods, at the first up; needs root")
	cmd.Flags().BoolVar(&o.pull, "pull", false, "members' agents connect to the federation, and a packet filter drops what it sends to members, at the first up; needs root")
	cmd.Flags().StringVar(&o.serviceProxy, "service-proxy", "iptables", "what makes Services work on real nodes: iptables or nftables (our agent in that mode), kube-proxy-iptables, kube-proxy-nftables, federated (kube-proxy, and our agent beside it in the scope federated) or none")
	cmd.Flags().BoolVar(&o.membersOnly, "members-only", false, "only the member clusters, without the federation")
	cmd.Flags().StringVar(&o.federationName, "federation-name", "fed", "name of the federation, at the first up")
	cmd.Flags().StringVar(&o.dnsZone, "dns-zone", "example.test", "DNS zone of the federation, at the first up")
	cmd.Flags().StringArrayVar(&o.federationFlags, "federation-flag", nil, "`FLAG` for federation serve beside those that the stack needs, each time it is started; may be given more than once")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 3*time.Minute, "how long to wait until all is ready")
	return cmd
}

// stack is all that runs below one root.
type stack struct {
	root   string // absolute, without symbolic links: it stands in the command lines of our processes
	bin    string
	began  time.Time
	locked *os.File
}

func newStack(root, bin string) (*stack, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(root)); err == nil {
		root = filepath.Join(real, filepath.Base(root))
	}
	bin, err = filepath.Abs(bin)
	return &stack{root: root, bin: bin, began: time.Now()}, err
}

func (s *stack) path(parts ...string) string {
	return filepath.Join(append([]string{s.root}, parts...)...)
}

// id tells this stack from others on the machine, in names that the kernel has.
func (s *stack) id() string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(s.root))) }

// say prints a line of progress, with the seconds since the start.
func (s *stack) say(format string, args ...any) {
	fmt.Printf("%6.1fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// lock keeps a second up or down away until the process ends. The lock is on the directory itself,
// so that nothing is left over when the directory is removed.
func (s *stack) lock() error {
	f, err := os.Open(s.root)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return fmt.Errorf("another up or down is at work in %s: wait until it is done", s.root)
	}
	s.locked = f // the lock lives as long as the file is open
	return nil
}
