package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
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

// maxRuns and maxRunOutput bound what is remembered: runs, and bytes of each one's output.
const (
	maxRuns      = 20
	maxRunOutput = 64 << 10
)

// consoleRun is a command that was begun on a page.
type consoleRun struct {
	ID      int        `json:"id"`
	Command string     `json:"command"`
	Began   time.Time  `json:"began"`
	Ended   *time.Time `json:"ended,omitempty"`
	// Output is what it printed, the newest of it.
	Output string `json:"output"`
	Error  string `json:"error,omitempty"`
}

// consoleRuns are the latest runs. They go on when the page is closed.
type consoleRuns struct {
	// ctx ends all runs.
	ctx  context.Context
	mu   sync.Mutex
	last int
	runs []*consoleRun
}

func (c *consoleRuns) list() []consoleRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]consoleRun, len(c.runs))
	for i, r := range c.runs {
		all[i] = *r
	}
	return all
}

// add notes a run, and forgets the oldest that has ended if there are too many; false if none has.
func (c *consoleRuns) add(r *consoleRun) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.runs) >= maxRuns {
		i := slices.IndexFunc(c.runs, func(r *consoleRun) bool { return r.Ended != nil })
		if i < 0 {
			return false
		}
		c.runs = slices.Delete(c.runs, i, i+1)
	}
	c.last++
	r.ID = c.last
	c.runs = append(c.runs, r)
	return true
}

// runOutput writes to a run's output.
type runOutput struct {
	runs *consoleRuns
	run  *consoleRun
}

func (o runOutput) Write(p []byte) (int, error) {
	o.runs.mu.Lock()
	defer o.runs.mu.Unlock()
	all := o.run.Output + string(p)
	o.run.Output = all[max(0, len(all)-maxRunOutput):]
	return len(p), nil
}

// begin begins a run, and answers with it.
func (a *consoleAnswers) begin(w http.ResponseWriter, r *http.Request) {
	asked := &action{}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(asked); err != nil {
		writeRefusal(w, http.StatusBadRequest, err.Error())
		return
	}
	args, err := asked.arguments()
	if err != nil {
		writeRefusal(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	one := &consoleRun{Command: shellCommand(args), Began: time.Now()}
	if !a.runs.add(one) {
		writeRefusal(w, http.StatusTooManyRequests, fmt.Sprintf("%d commands are running already", maxRuns))
		return
	}
	begun := *one
	go a.carryOut(one, args)
	answerJSON(w, http.StatusCreated, begun)
}

func (a *consoleAnswers) carryOut(one *consoleRun, args []string) {
	out := runOutput{a.runs, one}
	err := a.execute(a.runs.ctx, genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out}, args)
	a.runs.mu.Lock()
	defer a.runs.mu.Unlock()
	one.Ended = new(time.Now())
	if err != nil {
		one.Error = err.Error()
	}
}

// shellCommand returns the command as a shell takes it.
func shellCommand(args []string) string {
	words := []string{"kubectl", "federation"}
	for _, arg := range args {
		if arg == "--" {
			continue // names are checked before: none begins with -
		}
		words = append(words, shellQuote(arg))
	}
	return strings.Join(words, " ")
}

// shellQuote quotes a word for a shell if it needs to be.
func shellQuote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@%+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
