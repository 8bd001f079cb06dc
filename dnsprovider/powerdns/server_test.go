package powerdns

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"federation/dnsprovider/servertest"
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
	command := servertest.Find(t, "pdns_server", "pdns-server")
	text, err := os.ReadFile(schema)
	if err != nil {
		t.Skipf("%v (Debian: pdns-backend-sqlite3, see hack/install-tools.sh)", err)
	}
	dir := t.TempDir()
	sqlite := exec.Command("sqlite3", "-bail", filepath.Join(dir, "db"))
	sqlite.Stdin = strings.NewReader(string(text) + fmt.Sprintf(zoneSQL, kind))
	if out, err := sqlite.CombinedOutput(); err != nil {
		t.Fatalf("sqlite3 (Debian: sqlite3, see hack/install-tools.sh): %v\n%s", err, out)
	}
	api, dns := servertest.FreePort(t), servertest.FreePort(t)
	servertest.Write(t, dir, "pdns.conf", fmt.Sprintf(`launch=gsqlite3
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
`, dir, testKey, api, dns))
	s := server{url: fmt.Sprintf("http://127.0.0.1:%d", api), dns: fmt.Sprintf("127.0.0.1:%d", dns)}
	servertest.Run(t, exec.Command(command, "--config-dir="+dir, "--daemon=no", "--guardian=no"))
	servertest.Await(t, func() error {
		response, err := http.Get(s.url)
		if err == nil {
			response.Body.Close()
		}
		return err
	})
	return s
}
