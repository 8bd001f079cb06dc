package fleettest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Replay carries out the commands of a log in a fleet without members. What a command cannot do, as when another that it
// needs is not among them, it does not do. The error is what went against the laws, at the first command that something did.
func Replay(f *Fleet, lines []string, files map[string]string) error {
	p := &player{Fleet: f, files: files}
	for _, line := range lines {
		_, err := p.do(strings.Fields(line))
		if line != "settle" && line != "rest" && !strings.HasPrefix(line, "core ") {
			err = nil
		}
		if err = errors.Join(err, f.Failures()); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

// Shrink leaves lines out as long as what is left still fails, many at once first, until none can be left out or there
// is no more time.
func Shrink(lines []string, fails func([]string) bool, timeIsUp func() bool) []string {
	for size := (len(lines) + 1) / 2; size > 0; size /= 2 {
		for at := 0; at < len(lines) && !timeIsUp(); {
			end := min(at+size, len(lines))
			if less := slices.Concat(lines[:at], lines[end:]); fails(less) {
				lines = less
			} else {
				at = end
			}
		}
	}
	return lines
}

// SameLaw reports whether two errors are about one law.
func SameLaw(a, b error) bool {
	var x, y *Broken
	return errors.As(a, &x) && errors.As(b, &y) && x.Law == y.Law
}
