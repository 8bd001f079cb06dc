package powerdns

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	testZone = "example.test."
	testKey  = "a-key-for-the-api"
	schema   = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql"
	zoneSQL  = `INSERT INTO domains (id, name, type) VALUES (1, 'example.test', '%s');
INSERT INTO records (domain_id, name, type, content, ttl, auth) VALUES
 (1, 'example.test', 'SOA', 'ns.example.test admin.example.test 1 3600 600 86400 5', 60, 1),
 (1, 'example.test', 'NS', 'ns.example.test', 60, 1), (1, 'ns.example.test', 'A', '127.0.0.1', 60, 1);`
)

// server is a real PowerDNS with its records in SQLite.
type server struct {
	url string // of the API
	dns string // address
}

// start runs a server that has an empty zone of that kind (MASTER, NATIVE), until the test ends.
func start(t *testing.T, kind string) server {
	t.Helper()
	text, err := os.ReadFile(schema)
	command := lookPath("pdns_server")
	if err != nil || command == "" {
		t.Skip("PowerDNS is not installed (Debian: pdns-server, pdns-backend-sqlite3, see hack/install-tools.sh)")
	}
	dir := t.TempDir()
	sqlite := exec.Command("sqlite3", "-bail", filepath.Join(dir, "db"))
	sqlite.Stdin = strings.NewReader(string(text) + fmt.Sprintf(zoneSQL, kind))
	if out, err := sqlite.CombinedOutput(); err != nil {
		t.Fatalf("sqlite3 (Debian: sqlite3, see hack/install-tools.sh): %v\n%s", err, out)
	}
	api, dns := freePort(t), freePort(t)
	config := fmt.Sprintf(`launch=gsqlite3
gsqlite3-database=%s/db
gsqlite3-pragma-synchronous=0
primary=yes
api=yes
api-key=%s
webserver=yes
webserver-address=127.0.0.1
webserver-port=%d
webserver-allow-from=127.0.0.1
local-address=127.0.0.1
local-port=%d
socket-dir=%[1]s
disable-syslog=yes
`, dir, testKey, api, dns)
	if err := os.WriteFile(filepath.Join(dir, "pdns.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := server{url: fmt.Sprintf("http://127.0.0.1:%d", api), dns: fmt.Sprintf("127.0.0.1:%d", dns)}
	run(t, exec.Command(command, "--config-dir="+dir, "--daemon=no", "--guardian=no"), s.url)
	return s
}

// run runs the command until the test ends, and returns when it answers at the address.
func run(t *testing.T, cmd *exec.Cmd, url string) {
	t.Helper()
	log := &lockedBuffer{}
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
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if response, err := http.Get(url); err == nil {
			response.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not answer within 60 s", cmd.Path)
		}
	}
}

func lookPath(command string) string {
	for _, path := range []string{command, "/usr/sbin/" + command} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	return ""
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
