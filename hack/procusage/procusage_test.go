package procusage

import (
	"os"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	for begun := time.Now(); Of(os.Getpid()).CPU == 0; {
		if time.Since(begun) > time.Minute {
			t.Fatal("a process that does nothing else has used no CPU")
		}
	}
	if u := Of(os.Getpid()); u.RSS <= 0 || u.Peak < u.RSS {
		t.Errorf("of this process: %+v", u)
	}
	if u := Of(-1); u != (Usage{}) {
		t.Errorf("of none: %+v", u)
	}
}
