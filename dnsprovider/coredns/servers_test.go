package coredns

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
)

const testZone = "example.test."

// startEtcd runs a real etcd until the test ends.
func startEtcd(t *testing.T) *clientv3.Client {
	t.Helper()
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = t.TempDir(), "panic", true
	free := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{free}, []url.URL{free}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	<-etcd.Server.ReadyNotify()
	return newClient(t, "http://"+etcd.Clients[0].Addr().String())
}

func newClient(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func newProvider(t *testing.T, kv clientv3.KV) *batch.Provider {
	t.Helper()
	p, err := New(Options{Connect: func() (clientv3.KV, error) { return kv, nil }, Zones: []string{testZone}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// startCoreDNS runs a real CoreDNS on that etcd until the test ends, and returns its address.
func startCoreDNS(t *testing.T, etcd *clientv3.Client) string {
	t.Helper()
	command, err := filepath.Abs("../../_output/bin/coredns")
	if _, missing := os.Stat(command); err != nil || missing != nil {
		t.Skip("CoreDNS is not built: `make test-coredns` builds it and tests with it")
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := conn.LocalAddr().(*net.UDPAddr).Port
	conn.Close()
	dir := t.TempDir()
	config := fmt.Sprintf("%s:%d {\n bind 127.0.0.1\n errors\n etcd {\n  endpoint %s\n }\n}\n", testZone, port, etcd.Endpoints()[0])
	if err := os.WriteFile(filepath.Join(dir, "Corefile"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd, log := exec.Command(command, "-conf", filepath.Join(dir, "Corefile")), &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // it would wait for its health checks
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("CoreDNS wrote:\n%s", log)
		}
	})
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := dns.Exchange(new(dns.Msg).SetQuestion(testZone, dns.TypeSOA), address); err == nil {
			return address
		}
		if time.Now().After(deadline) {
			t.Fatalf("CoreDNS did not answer within 60 s:\n%s", log)
		}
	}
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

func mustNew(t testing.TB, name string, typ dnsprovider.Type, rdata ...string) dnsprovider.RRSet {
	t.Helper()
	set, err := dnsprovider.New(name+"."+testZone, typ, 15, rdata...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func apply(t *testing.T, p dnsprovider.Provider, changes dnsprovider.ChangeSet) {
	t.Helper()
	if err := p.Apply(context.Background(), testZone, changes); err != nil {
		t.Error(err)
	}
}
