package gate

import (
	"fmt"
	"strings"
)

// action is what a page wants done: one of this program's commands.
type action struct {
	// Do is cordon, uncordon, drain, undrain, drill (run one) or abort (one).
	Do string `json:"do"`
	// Name of the cluster; for drill and abort of the drill, which may be left out for drill.
	Name string `json:"name"`
	// DryRun changes nothing and says what would happen. Not for abort.
	DryRun bool `json:"dryRun"`
	// Confirm is what the user has typed: the cluster's name for drain, the scope for a drill.
	Confirm string `json:"confirm"`
	// Of a drill.
	Cluster string `json:"cluster"`
	Zone    string `json:"zone"`
	Region  string `json:"region"`
	Method  string `json:"method"`
	Hold    string `json:"hold"`
	Reason  string `json:"reason"`
}

// scope returns the cluster, zone or region of a drill.
func (a *action) scope() string { return a.Cluster + a.Zone + a.Region }

// arguments returns the command that does it, or an error that says what is wrong.
func (a *action) arguments() ([]string, error) {
	if strings.HasPrefix(a.Name, "-") {
		return nil, fmt.Errorf("name %q: must not begin with -", a.Name)
	}
	if a.Name == "" && a.Do != "drill" {
		return nil, fmt.Errorf("name %q: must be that of the cluster or drill", a.Name)
	}
	var args []string
	needs := ""
	switch a.Do {
	case "cordon", "uncordon", "undrain":
		args = []string{a.Do}
	case "drain":
		args, needs = []string{a.Do}, a.Name
	case "abort":
		return []string{"drill", "abort", "--", a.Name}, nil
	case "drill":
		args, needs = a.drillArguments(), a.scope()
	default:
		return nil, fmt.Errorf("do %q: must be cordon, uncordon, drain, undrain, drill or abort", a.Do)
	}
	if !a.DryRun && a.Confirm != needs && needs != "" {
		return nil, fmt.Errorf("confirm %q: must be %s", a.Confirm, needs)
	}
	if a.DryRun {
		args = append(args, "--dry-run")
	}
	if a.Name != "" {
		args = append(args, "--", a.Name)
	}
	return args, nil
}

func (a *action) drillArguments() []string {
	args := []string{"drill", "run"}
	for _, f := range [][2]string{{"cluster", a.Cluster}, {"zone", a.Zone}, {"region", a.Region}, {"method", a.Method}, {"hold", a.Hold}, {"reason", a.Reason}} {
		if f[1] != "" {
			args = append(args, "--"+f[0]+"="+f[1])
		}
	}
	if a.DryRun {
		return args
	}
	return append(args, "--yes", "--detach")
}
