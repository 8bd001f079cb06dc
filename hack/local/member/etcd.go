package main

import (
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcdEndpoint is a unix socket in the working directory. Only the owner of the data directory can reach it.
const etcdEndpoint = "unix://etcd.sock"

// startEtcd starts a single-member etcd and returns when it serves.
func startEtcd() (*embed.Etcd, error) {
	if err := os.Remove("etcd.sock"); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	e, err := embed.StartEtcd(etcdConfig())
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case err := <-e.Err():
		return nil, fmt.Errorf("etcd: %w", err)
	case <-time.After(time.Minute):
		e.Close()
		return nil, fmt.Errorf("etcd: not ready after a minute")
	}
}

func etcdConfig() *embed.Config {
	c := embed.NewConfig()
	c.Dir = "etcd"
	c.ListenClientUrls = []url.URL{{Scheme: "unix", Host: "etcd.sock"}}
	c.ListenPeerUrls = nil
	// Nobody reads the advertised addresses, but they must have the form host:port.
	nowhere := []url.URL{{Scheme: "http", Host: "localhost:0"}}
	c.AdvertiseClientUrls, c.AdvertisePeerUrls = nowhere, nowhere
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.UnsafeNoFsync = true
	// Raft keeps this many entries in memory; the default of 10000 is the larger part of etcd's heap.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 2000, 500
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(zapcore.NewCore(
		zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig()), zapcore.Lock(os.Stderr), zap.ErrorLevel)))
	return c
}
