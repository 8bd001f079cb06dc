package process

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// GiveBack releases memory that starting, or reading much, has used: free heap, and mapped pages of the program itself. Kubernetes' types
// register themselves at the start, which touches 20 MB of it; the kernel maps needed pages again.
func GiveBack() {
	debug.FreeOSMemory()
	program, err := os.Executable()
	if err != nil {
		return
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	for _, m := range unchangedMappings(smaps, program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED) // or else they stay
	}
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// unchangedMappings returns the read-only mappings of a file, in the format of /proc/PID/smaps, of which no page was changed
// before: their content is the file's.
func unchangedMappings(smaps *os.File, file string) (all []mapping) {
	var current mapping
	of := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) >= 5 && strings.Contains(f[0], "-") {
			of = len(f) == 6 && f[5] == file && f[1][1] == '-'
			current = parseRange(f[0])
			continue
		}
		if of && len(f) == 3 && f[0] == "Anonymous:" && f[1] == "0" && current.end > current.start {
			all = append(all, current)
		}
	}
	return all
}

// parseRange reads START-END in hexadecimal; an empty range for anything else.
func parseRange(text string) (m mapping) {
	first, last, _ := strings.Cut(text, "-")
	start, err := strconv.ParseUint(first, 16, 64)
	end, err2 := strconv.ParseUint(last, 16, 64)
	if err != nil || err2 != nil {
		return mapping{}
	}
	return mapping{uintptr(start), uintptr(end)}
}
