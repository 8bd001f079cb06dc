package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// asked returns a server's answer for a name's addresses; its code if there are none.
func asked(server, name string) string {
	reply, err := dns.Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), server)
	if err != nil {
		return err.Error()
	}
	if len(reply.Answer) == 0 {
		return dns.RcodeToString[reply.Rcode]
	}
	return reply.Answer[0].(*dns.A).A.String()
}

func eventually(t *testing.T, want string, got func() string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); got() != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got %q for 10 s, want %q", got(), want)
		}
	}
}

// TestServesAFile runs the program's command on a file that changes.
func TestServesAFile(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	file := filepath.Join(t.TempDir(), "zone")
	rewrite := func(address string) {
		text := fmt.Sprintf("@ 300 IN SOA ns hostmaster 1 60 10 604800 7\nns A 192.0.2.53\nweb 15 IN A %s\n", address)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rewrite("192.0.2.1")
	c := command()
	c.SetArgs([]string{"--zone", "Example.test", "--zone-file", file, "--listen", at, "--threads", "1"})
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	web := func() string { return asked(at, "web.example.test.") }
	eventually(t, "192.0.2.1", web)
	if got := asked(at, "ns.example.test."); got != "192.0.2.53" {
		t.Errorf("the name server is at %s, want the file's 192.0.2.53", got)
	}
	rewrite("192.0.2.200")
	eventually(t, "192.0.2.200", web)
	rewrite("no address")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	rewrite("192.0.2.30")
	eventually(t, "192.0.2.30", web)
}

func TestFlagsAreChecked(t *testing.T) {
	for args, want := range map[string]string{
		"":                                "--zone is required",
		"--zone a..b --zone-file x":       `label ""`,
		"--zone a.test":                   "--kubeconfig or --zone-file is required",
		"--zone a.test --zone-file /none": "--zone-file: open /none",
		"--zone a.test --zone-file x --listen here":        "must be HOST:PORT",
		"--zone a.test --zone-file /dev/null --threads -1": "must be from 0 to 1024",
		"--zone a.test --zone-file x --threads 1 extra":    "extra",
	} {
		c := command()
		c.SetArgs(strings.Fields(args))
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", args, err, want)
		}
	}
}
