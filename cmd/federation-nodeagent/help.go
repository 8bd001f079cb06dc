package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// group is flags that --help shows together.
type group struct {
	title string
	flags string // their names, separated by spaces; a trailing - makes one a prefix
}

// groups are in the order of the help. Flags in none of them come last.
var groups = []group{
	{"The connection", "from to protocol interface"},
	{"This node and its API server", "kubeconfig master hostname-override kube-api-qps kube-api-burst"},
	{"What is served", "scope clusterset-ip-range federation-uid nodeport-addresses service-proxy-name"},
	{"What pods send", "cluster-cidr detect-local-mode pod-bridge-interface pod-interface-name-prefix masquerade-all"},
	{"Into the kernel", "proxy-mode iptables-backend iptables-min-sync-period iptables-sync-period cleanup"},
	{"Sysctls", "init-only sysctl-dir conntrack-"},
	{"Health and metrics", "healthz-bind-address metrics-bind-address"},
	{"Others", ""},
}

// has reports whether a flag is of the group.
func (g group) has(flag string) bool {
	return slices.ContainsFunc(strings.Fields(g.flags), func(name string) bool {
		return name == flag || strings.HasSuffix(name, "-") && strings.HasPrefix(flag, name)
	})
}

// groupedUsage returns flags as --help shows them: each group with its title.
func groupedUsage(flags *pflag.FlagSet) string {
	sections := make([]*pflag.FlagSet, len(groups))
	for i := range sections {
		sections[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		i := slices.IndexFunc(groups, func(g group) bool { return g.has(f.Name) })
		if i < 0 {
			i = len(groups) - 1
		}
		sections[i].AddFlag(f)
	})
	var out []string
	for i, s := range sections {
		if s.HasAvailableFlags() {
			out = append(out, groups[i].title+":\n"+strings.TrimRight(s.FlagUsagesWrapped(120), "\n"))
		}
	}
	return strings.Join(out, "\n\n")
}

// groupFlags makes a command and its subcommands print their flags in groups. It uses no template, because a program
// with text/template keeps all methods of all its types, which here would be most of its memory.
func groupFlags(c *cobra.Command) { c.SetUsageFunc(usage) }

func usage(c *cobra.Command) error {
	w := &strings.Builder{}
	fmt.Fprintf(w, "Usage:\n  %s\n", c.UseLine())
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s [command]\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintln(w, "\nAvailable Commands:")
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() || below.Name() == "help" {
				fmt.Fprintf(w, "  %-*s %s\n", below.NamePadding(), below.Name(), below.Short)
			}
		}
	}
	for _, flags := range []*pflag.FlagSet{c.LocalFlags(), c.InheritedFlags()} {
		if flags.HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s\n", groupedUsage(flags))
		}
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nUse \"%s [command] --help\" for more information about a command.\n", c.CommandPath())
	}
	_, err := io.WriteString(c.OutOrStderr(), w.String())
	return err
}

// completeWith has the shell complete a flag with the values that it may have.
func completeWith(c *cobra.Command, flag string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
}
