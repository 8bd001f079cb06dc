package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	explainplan "federation/controllers/explain/plan"
)

const (
	watchPeriod = 2 * time.Second
	clearScreen = "\x1b[H\x1b[2J\x1b[3J"
)

// show prints a status as a table. Messages are cut only for a terminal: a pipe has no width.
func (o *statusCommand) show(out io.Writer, s *explainplan.Status, terminal bool) {
	e := extent{maxRows, terminal}
	if o.all {
		e.rows = len(s.Clusters) + len(s.OutOfSync)
	}
	printStatus(out, s, e, time.Now())
}

// keepShowing looks once in a period, until ctx ends. On a terminal each status takes the place of the one before, where ages go on; elsewhere only one that
// differs is printed, below its time. A look that fails is shown as well, for the federation may come back.
func (o *statusCommand) keepShowing(ctx context.Context, out io.Writer, look func(context.Context) (*explainplan.Status, error), period time.Duration) error {
	terminal := isTerminal(out)
	var shown []byte
	for {
		s, err := look(ctx)
		if ctx.Err() != nil {
			return nil // interrupted
		}
		is, bad := json.Marshal(s)
		if bad != nil {
			return bad
		}
		if err != nil {
			is = []byte(err.Error())
		}
		if terminal || !bytes.Equal(is, shown) {
			var page bytes.Buffer
			if terminal {
				page.WriteString(clearScreen)
			}
			fmt.Fprintf(&page, "%s\n\n", time.Now().Format(time.RFC3339))
			if err != nil {
				fmt.Fprintf(&page, "error: %v\n", err)
			} else {
				o.show(&page, s, terminal)
			}
			if _, err := out.Write(page.Bytes()); err != nil {
				return err
			}
			shown = is
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(period):
		}
	}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
