package election

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// ProcessName returns a name of this process as Leases have it: of two processes of a machine, or two lives of one, each has its own.
func ProcessName() string {
	return fmt.Sprintf("%s-%d-%d", HostName(), os.Getpid(), time.Now().UnixMilli())
}

// HostName returns the name of this machine, in the letters that names of objects have.
func HostName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return inLettersOfNames(host)
}

func inLettersOfNames(host string) string {
	letters := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}
	return strings.Trim(strings.Map(letters, strings.ToLower(host)), "-")
}
