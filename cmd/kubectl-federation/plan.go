package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/scheduler/apportion"
)

// planCommand holds the flags of "plan replicas" as they were given.
type planCommand struct {
	replicas, clusters, preferences, current, capacity, key, output string
}

func newPlan(streams genericiooptions.IOStreams) *cobra.Command {
	plan := &cobra.Command{Use: "plan", Short: "Show what the federation would decide, without changing anything", Args: cobra.NoArgs, RunE: help}
	o := &planCommand{}
	c := &cobra.Command{
		Use:   "replicas --replicas N --clusters A,B,…",
		Short: "Show how replicas would be divided over clusters",
		Long: `Show how replicas would be divided over clusters. No server is asked.

Minimums come first, then the rest is divided by weight, within maximums and capacities. Without
"rebalance" what is placed already stays where it is as far as it can. What a full cluster cannot take
goes to the others, and is its overflow: it may be asked of it in addition.`,
		Example: `  # Twice as many on B as on A
  kubectl federation plan replicas --replicas 60 --clusters A,B \
    --preferences '{"clusters":{"A":{"weight":1},"B":{"weight":2}}}'

  # 30 are placed on A already, and are not moved
  kubectl federation plan replicas --replicas 50 --clusters A,B --current A=30

  # C can hold 10
  kubectl federation plan replicas --replicas 50 --clusters A,B,C --capacity C=10 -o json \
    --preferences '{"rebalance":true,"clusters":{"*":{"weight":1}}}'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run(streams.Out) },
	}
	f := c.Flags()
	f.StringVar(&o.replicas, "replicas", "", "how many replicas to divide")
	f.StringVar(&o.clusters, "clusters", "", "names of the clusters, separated by commas")
	f.StringVar(&o.preferences, "preferences", "", "preferences as in the annotation "+v1beta1.ReplicaSetPreferencesAnnotation+"; without them all clusters have weight 1")
	f.StringVar(&o.current, "current", "", "replicas that are placed already, as A=10,B=20")
	f.StringVar(&o.capacity, "capacity", "", "the most replicas that clusters can hold, as A=10,B=20; without a limit for those not named")
	f.StringVar(&o.key, "key", "", "NAMESPACE/NAME of the object, which decides between equal clusters")
	f.StringVarP(&o.output, "output", "o", "table", "table, json or yaml")
	for _, name := range []string{"replicas", "clusters"} {
		_ = c.MarkFlagRequired(name) // fails only for a flag that is not there
	}
	_ = c.RegisterFlagCompletionFunc("output", fixedWords("table", "json", "yaml")) // fails only for a flag that is not there
	plan.AddCommand(c, newPlanFailover(streams))
	return plan
}

func (o *planCommand) run(out io.Writer) error {
	request, err := o.request()
	if err != nil {
		return err
	}
	print, ok := map[string]func(io.Writer, apportion.Result) error{"table": printPlan, "json": printJSON, "yaml": printYAML}[o.output]
	if !ok {
		return fmt.Errorf("--output %q: must be table, json or yaml", o.output)
	}
	return print(out, apportion.Plan(request))
}

func (o *planCommand) request() (r apportion.Request, err error) {
	if r.Replicas, err = parseNumber("--replicas", o.replicas); err != nil {
		return r, err
	}
	names, err := o.names()
	if err != nil {
		return r, err
	}
	current, err := perCluster("--current", o.current, names)
	if err != nil {
		return r, err
	}
	capacity, err := perCluster("--capacity", o.capacity, names)
	if err != nil {
		return r, err
	}
	for _, name := range names {
		c := apportion.Cluster{Name: name, Current: current[name]}
		if n, ok := capacity[name]; ok {
			c.Capacity = &n
		}
		r.Clusters = append(r.Clusters, c)
	}
	if r.Preferences, err = o.parsePreferences(); err != nil {
		return r, err
	}
	r.Key, err = o.parseKey()
	r.Group, _, _ = strings.Cut(r.Key, "/")
	return r, err
}

func (o *planCommand) names() ([]string, error) {
	names := strings.Split(o.clusters, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if names[i] == "" || names[i] == v1beta1.AnyCluster || strings.ContainsAny(names[i], "= ") {
			return nil, fmt.Errorf("--clusters %q: must be names separated by commas, %q is none", o.clusters, name)
		}
		if slices.Contains(names[:i], names[i]) {
			return nil, fmt.Errorf("--clusters %q: names %q twice", o.clusters, names[i])
		}
	}
	return names, nil
}

func (o *planCommand) parsePreferences() (*v1beta1.ReplicaPreferences, error) {
	if o.preferences == "" {
		return nil, nil
	}
	p, errs := v1beta1.ParseReplicaPreferences(o.preferences, field.NewPath("--preferences"))
	return p, errs.ToAggregate()
}

func (o *planCommand) parseKey() (string, error) {
	namespace, name, ok := strings.Cut(o.key, "/")
	if o.key != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		return "", fmt.Errorf("--key %q: must be NAMESPACE/NAME", o.key)
	}
	return o.key, nil
}

func parseNumber(flag, value string) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%s %q: must be a whole number from 0 to %d", flag, value, math.MaxInt32)
	}
	return n, nil
}

// perCluster reads a flag of the form A=10,B=20.
func perCluster(flag, value string, names []string) (map[string]int64, error) {
	out := map[string]int64{}
	if value == "" {
		return out, nil
	}
	for _, term := range strings.Split(value, ",") {
		name, count, ok := strings.Cut(strings.TrimSpace(term), "=")
		if !ok {
			return nil, fmt.Errorf("%s %q: %q must be CLUSTER=NUMBER", flag, value, term)
		}
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%s %q: cluster %q is not among --clusters %s", flag, value, name, strings.Join(names, ","))
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%s %q: names %q twice", flag, value, name)
		}
		n, err := parseNumber(flag+" "+name+"=", count)
		if err != nil {
			return nil, err
		}
		out[name] = n
	}
	return out, nil
}

// printed is the form of a plan for programs.
type printed struct {
	Plan          map[string]int64 `json:"plan"`
	Overflow      map[string]int64 `json:"overflow"`
	Unschedulable int64            `json:"unschedulable,omitempty"`
}

func forPrograms(r apportion.Result) printed {
	p := printed{Plan: r.Plan, Overflow: map[string]int64{}, Unschedulable: r.Unschedulable}
	for name, n := range r.Overflow {
		if n > 0 {
			p.Overflow[name] = n
		}
	}
	return p
}

func printJSON(out io.Writer, r apportion.Result) error {
	return json.NewEncoder(out).Encode(forPrograms(r))
}

func printYAML(out io.Writer, r apportion.Result) error {
	b, err := yaml.Marshal(forPrograms(r))
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	return err
}

func printPlan(out io.Writer, r apportion.Result) error {
	w := newTable(out, "CLUSTER\tREPLICAS\tOVERFLOW\tWHY")
	names := make([]string, 0, len(r.Plan))
	for name := range r.Plan {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		tell(w, "%s\t%d\t%d\t%s\n", name, r.Plan[name], r.Overflow[name], strings.Join(r.Reasons[name], "; "))
	}
	if r.Unschedulable > 0 {
		tell(w, "\n%s would fit nowhere.\n", phrase.Count(r.Unschedulable, "replica"))
	}
	return w.Flush()
}
