// Package servertest runs other projects' DNS servers, on loopback, for as long as a test takes.
//
//	command := servertest.Find(t, "named", "bind9")
//	dir, port := servertest.Dir(t), servertest.FreePort(t)
//	config := servertest.Write(t, dir, "named.conf", …)
//	servertest.Run(t, exec.Command(command, "-g", "-c", config))
//	servertest.AwaitSOA(t, fmt.Sprintf("127.0.0.1:%d", port), "example.test.")
//
// What was traded: a test is skipped where its server is not installed, so that the others run on any
// machine. hack/test.sh installs all of them first; a new server gets a line in hack/install-tools.sh.
package servertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// Find returns the path of a command that the Debian package brings, in the PATH or in /usr/sbin, which the
// PATH of most users lacks. Without it the test is skipped.
func Find(t testing.TB, command, debian string) string {
	t.Helper()
	for _, name := range []string{command, "/usr/sbin/" + command} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("%s is not installed (Debian: %s, see hack/install-tools.sh)", command, debian)
	return ""
}

// FreePort returns a port of 127.0.0.1 that was free a moment ago, for TCP and for UDP: a server that ends lets go of one before the other. It lies
// below the range from which the kernel takes ports for outgoing connections, one of which could have it before the server starts, or starts again.
func FreePort(t testing.TB) int {
	t.Helper()
	const low, high = 10000, 20000
	for range high - low {
		port := low + rand.IntN(high-low)
		at := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", at)
		if err != nil {
			continue
		}
		p, err := net.ListenPacket("udp", at)
		l.Close()
		if err == nil {
			p.Close()
			return port
		}
	}
	t.Fatalf("no port of 127.0.0.1 from %d to %d is free", low, high)
	return 0
}

// Dir returns an empty folder until the test ends. A server that becomes another user may write into it too.
func Dir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Write writes a file that all may read, and returns its path.
func Write(t testing.TB, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Run starts the command, and returns its output. When the test ends, Run ends the command and waits for it; if the
// test has failed, it logs the output.
func Run(t testing.TB, cmd *exec.Cmd) *Log {
	t.Helper()
	log := &Log{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", cmd.Path, log)
		}
	})
	return log
}

// Await calls done until it returns nil, and fails the test with its last error after a minute.
func Await(t testing.TB, done func() error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := done()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute still: %v", err)
		}
	}
}

// AwaitSOA waits until the server at the address, host:port, has the zone, over UDP and TCP, as Await does.
func AwaitSOA(t testing.TB, address, zone string) {
	t.Helper()
	for _, network := range []string{"udp", "tcp"} {
		Await(t, func() error {
			reply, _, err := (&dns.Client{Net: network}).Exchange(new(dns.Msg).SetQuestion(zone, dns.TypeSOA), address)
			if err == nil && reply.Rcode != dns.RcodeSuccess {
				err = fmt.Errorf("%s answers %s for the SOA record of %s", address, dns.RcodeToString[reply.Rcode], zone)
			}
			return err
		})
	}
}

// AskWhile asks the server for the addresses of the name while change runs. It fails the test at the first answer with
// another number of records.
func AskWhile(t testing.TB, address, name string, records int, change func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		change()
	}()
	for asked := 1; ; asked++ {
		reply, err := dns.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), address)
		if err != nil || reply.Rcode != dns.RcodeSuccess || len(reply.Answer) != records {
			t.Fatalf("a reader gets %v, %v", err, reply)
		}
		select {
		case <-done:
			t.Logf("%d questions meanwhile", asked)
			return
		default:
		}
	}
}

// Log is what a process or server writes and a test may read meanwhile.
type Log struct {
	lock sync.Mutex
	text bytes.Buffer
}

// Write appends to the log.
func (l *Log) Write(p []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.Write(p)
}

// String returns all that was written so far.
func (l *Log) String() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.String()
}
