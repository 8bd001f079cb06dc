package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"federation/controllers/supervisor"
)

// maxRuns and maxRunOutput bound what is remembered: runs, unless more are under way, and bytes of each one's output.
const (
	maxRuns      = 20
	maxRunOutput = 64 << 10
)

// commandRun is a command that was begun on a page.
type commandRun struct {
	ID      int        `json:"id"`
	Command string     `json:"command"`
	Began   time.Time  `json:"began"`
	Ended   *time.Time `json:"ended,omitempty"`
	// Output is what it printed, the newest of it.
	Output string `json:"output"`
	Error  string `json:"error,omitempty"`
}

// runs are the latest runs. They go on when the page is closed.
type runs struct {
	// ctx ends all runs.
	ctx  context.Context
	mu   sync.Mutex
	last int
	runs []*commandRun
}

func (c *runs) list() []commandRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]commandRun, len(c.runs))
	for i, r := range c.runs {
		all[i] = *r
	}
	return all
}

// mostUnderWay returns how many runs may be under way for one more to begin. Those that change nothing leave room for others, and all leave
// room to abort a drill.
func (a *action) mostUnderWay() int {
	switch {
	case a.DryRun:
		return maxRuns
	case a.Do == "abort":
		return 3 * maxRuns
	}
	return 2 * maxRuns
}

// add notes a run, and forgets the oldest that has ended if there are too many; false if none has, and most are under way.
func (c *runs) add(r *commandRun, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.runs) >= maxRuns {
		if i := slices.IndexFunc(c.runs, func(r *commandRun) bool { return r.Ended != nil }); i >= 0 {
			c.runs = slices.Delete(c.runs, i, i+1)
		} else if len(c.runs) >= most {
			return false
		}
	}
	c.last++
	r.ID = c.last
	c.runs = append(c.runs, r)
	return true
}

// runOutput writes to a run's output.
type runOutput struct {
	runs *runs
	run  *commandRun
}

func (o runOutput) Write(p []byte) (int, error) {
	o.runs.mu.Lock()
	defer o.runs.mu.Unlock()
	all := o.run.Output + string(p)
	o.run.Output = all[max(0, len(all)-maxRunOutput):]
	return len(p), nil
}

// begin begins a run, and answers with it.
func (a *answers) begin(w http.ResponseWriter, r *http.Request) {
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
	one := &commandRun{Command: shellCommand(args), Began: time.Now()}
	if most := asked.mostUnderWay(); !a.runs.add(one, most) {
		writeRefusal(w, http.StatusTooManyRequests, fmt.Sprintf("%d commands are running already", most))
		return
	}
	begun := *one
	go func() {
		a.end(one, supervisor.Protect(a.runs.ctx, "console", func() error {
			out := runOutput{a.runs, one}
			return a.Run(a.runs.ctx, out, out, args)
		}))
	}()
	answerJSON(w, http.StatusCreated, begun)
}

// end notes that a run has ended.
func (a *answers) end(one *commandRun, err error) {
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
