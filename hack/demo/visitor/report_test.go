package main

import (
	"errors"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	var r report
	if r.current() != nil {
		t.Error("a phase before the first has begun")
	}
	start := time.Unix(1000, 0)
	r.begin("both are up")
	first := r.current()
	r.add(first, start, "east-a", nil)
	r.begin("east-a dies")
	r.add(r.current(), start.Add(2500*time.Millisecond), "", errors.New("refused"))
	r.add(r.current(), start.Add(1*time.Second), "", errors.New("timeout"))
	r.add(r.current(), start.Add(3*time.Second), "west-a", nil)
	r.add(first, start, "west-a", nil) // what takes long counts where it began
	want := `                                     requests   east-a   west-a   failed
  both are up                               2        1        1        0
  east-a dies                               3        0        1        2, within 1.5 s
`
	if got := r.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
