package coredns

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
	"federation/dnsprovider/servertest"
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
	dir, port := t.TempDir(), servertest.FreePort(t)
	corefile := servertest.Write(t, dir, "Corefile",
		fmt.Sprintf("%s:%d {\n bind 127.0.0.1\n errors\n etcd {\n  endpoint %s\n }\n}\n", testZone, port, etcd.Endpoints()[0]))
	cmd := exec.Command(command, "-conf", corefile)
	servertest.Run(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // asked to end, it would wait for its health checks
	address := fmt.Sprintf("127.0.0.1:%d", port)
	servertest.AwaitSOA(t, address, testZone)
	return address
}

func apply(t *testing.T, p dnsprovider.Provider, changes dnsprovider.ChangeSet) {
	t.Helper()
	if err := p.Apply(context.Background(), testZone, changes); err != nil {
		t.Error(err)
	}
}
