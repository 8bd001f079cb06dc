// Command etcd is an etcd outside of all clusters that wants client certificates, for federations that keep their objects there.
//
//	etcd --data-dir DIR --address 10.64.255.254:2379
//
// DIR/pki has its authority, ca.crt, and a client's certificate and key, admin.crt and admin.key.
package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"federation/apiserver/pki"
)

func main() {
	dir := pflag.String("data-dir", "", "directory of its data and certificates")
	address := pflag.String("address", "127.0.0.1:2379", "`IP:PORT` for clients")
	pflag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir, *address); err != nil {
		fmt.Fprintf(os.Stderr, "etcd: error: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--address %q: %w", address, err)
	}
	files, err := pki.Ensure(dir, pki.Request{Server: "https://unused", Hosts: []string{host}}, time.Now())
	if err != nil {
		return err
	}
	clients := url.URL{Scheme: "https", Host: address}
	c := embed.NewConfig()
	c.Dir, c.LogLevel = filepath.Join(dir, "etcd"), "warn"
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{clients}, []url.URL{clients}
	c.ListenPeerUrls = nil
	c.ClientTLSInfo = transport.TLSInfo{CertFile: files.ServingCert, KeyFile: files.ServingKey, TrustedCAFile: files.CA, ClientCertAuth: true}
	server, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return err
	}
}
