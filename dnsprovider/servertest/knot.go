package servertest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"text/template"
)

// Knot is a Knot DNS that is the primary of one zone.
type Knot struct {
	// Zone is its name, File its text (RFC 1035, section 5).
	Zone, File string
	// Keys are those (TSIG, RFC 8945, hmac-sha256) by which more may be done than to ask.
	Keys []KnotKey
}

// KnotKey is a key: its name, its secret in base64, and what one may do by it, as Knot calls that: "transfer, update".
type KnotKey struct{ Name, Secret, May string }

var knotConfig = template.Must(template.New("knot.conf").Parse(`
server:
    listen: 127.0.0.1@{{.Port}}
    rundir: "{{.Dir}}"
    background-workers: 1
    udp-workers: 1
    tcp-workers: 1
log:
  - target: stderr
    any: info
database:
    storage: "{{.Dir}}"
{{- with .Keys}}
key:
{{- range .}}
  - id: {{.Name}}
    algorithm: hmac-sha256
    secret: {{.Secret}}
{{- end}}
acl:
{{- range .}}
  - id: {{.Name}}
    key: {{.Name}}
    action: [{{.May}}]
{{- end}}
{{- end}}
zone:
  - domain: {{.Zone}}
    storage: "{{.Dir}}"
    file: zone
{{- with .Keys}}
    acl: [{{range $i, $key := .}}{{if $i}}, {{end}}{{.Name}}{{end}}]
{{- end}}
`))

// Start runs it on a free port of loopback until the test ends. It returns its address, host:port, and its process when it has
// the zone.
func (k Knot) Start(t testing.TB) (address string, process *os.Process) {
	t.Helper()
	command, dir, port := Find(t, "knotd", "knot"), Dir(t), FreePort(t)
	Write(t, dir, "zone", k.File)
	var config strings.Builder
	if err := knotConfig.Execute(&config, struct {
		Knot
		Dir  string
		Port int
	}{k, dir, port}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command, "-c", Write(t, dir, "knot.conf", config.String()))
	Run(t, cmd)
	address = fmt.Sprintf("127.0.0.1:%d", port)
	AwaitSOA(t, address, k.Zone)
	return address, cmd.Process
}
