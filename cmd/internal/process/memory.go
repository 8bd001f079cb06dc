package process

import (
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// gcOfLimit is the share of the process's memory limit that it stays below by collecting garbage.
const gcOfLimit = 0.9

// LimitMemory has the process collect garbage in time to stay below its memory limit (MemoryMax= of its unit, the limit of its container), so that it
// is not ended for its garbage. GOMEMLIMIT in the environment takes precedence.
func LimitMemory() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if most, ok := memoryMax("/"); ok {
		debug.SetMemoryLimit(int64(gcOfLimit * float64(most)))
	}
}

// memoryMax returns how many bytes the process may have by its control group (version 2) and those around it, below the root of the file system; false
// if there is no limit, or none that can be read.
func memoryMax(root string) (most int64, limited bool) {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		group, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::/")
		if !is {
			continue
		}
		for group = path.Join("/", group); ; group = path.Dir(group) {
			text, err := os.ReadFile(filepath.Join(root, "sys/fs/cgroup", group, "memory.max"))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n > 0 && (!limited || n < most) {
				most, limited = n, true
			}
			if group == "/" {
				return most, limited
			}
		}
	}
	return 0, false
}
