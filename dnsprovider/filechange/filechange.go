// Package filechange notices when files have changed, by polling.
//
//	w := filechange.Watch("zone") // before it is read
//	w.Follow(ctx, hangups, func() { … })
//
// What was traded: a check per second in place of inotify, which sees nothing if files come by network file systems or are
// links that Kubernetes replaces.
package filechange

import (
	"context"
	"os"
	"slices"
	"time"
)

// Every is the period of checks.
const Every = time.Second

// Watcher remembers the files as last read. Make it with Watch.
type Watcher struct {
	files []string
	read  []look
}

// look identifies one content of a file; zero means that there is no file.
type look struct {
	modified time.Time
	size     int64
}

// Watch records the state of the files, which are about to be read. It ignores names that are "".
func Watch(files ...string) *Watcher {
	w := &Watcher{files: slices.DeleteFunc(slices.Clone(files), func(name string) bool { return name == "" })}
	w.read = w.statFiles()
	return w
}

func (w *Watcher) statFiles() []look {
	all := make([]look, len(w.files))
	for i, name := range w.files {
		if info, err := os.Stat(name); err == nil {
			all[i] = look{info.ModTime(), info.Size()}
		}
	}
	return all
}

// Follow calls again when a file has changed and then stayed the same between two checks, so that no half-written file
// is read; and at once when now receives. It returns when ctx ends.
func (w *Watcher) Follow(ctx context.Context, now <-chan os.Signal, again func()) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for before := w.read; ; {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-now:
			asked = true
		case <-tick.C:
		}
		seen := w.statFiles()
		if asked || slices.Equal(seen, before) && !slices.Equal(seen, w.read) {
			w.read = seen
			again()
		}
		before = seen
	}
}
