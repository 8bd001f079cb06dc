package iptables

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"federation/nodeagent/nettest"
	"federation/nodeagent/ruleset"
)

// The time until the kernel has a change of one endpoint of one of many Services, compared with a bare iptables-restore of one
// chain, the minimum for any use of it; and the time of a full load, and of a comparison.
//
//	go test ./nodeagent/iptables -run '^$' -bench . -benchtime 20x
func BenchmarkWriter(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		for _, backend := range []Backend{Legacy, NFT} {
			b.Run(fmt.Sprintf("%s/%dx10", backend, n), func(b *testing.B) { benchmark(b, backend, n) })
		}
	}
}

func benchmark(b *testing.B, backend Backend, n int) {
	node := nettest.New(b).Nodes[0]
	w := newWriter(b, Config{Backend: backend, IPv4: true})
	ports := benchPorts(n)
	must := func(do func() error) {
		b.Helper()
		if err := node.Do(do); err != nil {
			b.Fatal(err)
		}
	}
	timed := func(do func() error) time.Duration {
		start := time.Now()
		must(do)
		return time.Since(start)
	}
	load := timed(func() error { return w.Sync(b.Context(), testNode(), ports) })
	again := timed(func() error { return w.Sync(b.Context(), testNode(), ports) })
	f, bare := w.families[0], time.Duration(0)
	now := ports[n/2]
	for i := 0; b.Loop(); i++ {
		next := *now
		next.Cluster.Backends = append([]ruleset.Backend(nil), now.Cluster.Backends...)
		next.Cluster.Backends[9].Weight = uint32(i%2 + 1)
		must(func() error {
			return w.Write(b.Context(), testNode(), []ruleset.PortChange{{Before: now, After: &next}})
		})
		now = &next
		b.StopTimer()
		bare += timed(func() error {
			return f.run(b.Context(), "restore", []byte("*nat\n:OTHER - [0:0]\n-A OTHER -j RETURN\nCOMMIT\n"), "--noflush")
		})
		b.StartTimer()
	}
	b.ReportMetric(float64(load.Milliseconds()), "ms/load")
	b.ReportMetric(float64(again.Milliseconds()), "ms/again")
	b.ReportMetric(float64(bare.Microseconds())/float64(b.N)/1000, "ms/bare")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/change")
}

// benchPorts returns n Ports with a cluster IP and ten backends each.
func benchPorts(n int) []*ruleset.Port {
	out := make([]*ruleset.Port, n)
	for i := range out {
		p := testPort(fmt.Sprint("s", i), 0, false, "TCP")
		p.Frontends = p.Frontends[1:2]
		p.Frontends[0].Key.Addr = nth("10.96.0.0", i)
		p.Own, p.Local, p.HealthCheckNodePort = ruleset.Pool{}, ruleset.Pool{}, 0
		p.Cluster.Backends = nil
		for e := range 10 {
			p.Cluster.Backends = append(p.Cluster.Backends, backendAt(nth("10.180.0.0", 10*i+e)))
		}
		out[i] = p
	}
	return out
}

func nth(first string, i int) netip.Addr {
	a := netip.MustParseAddr(first).As4()
	binary.BigEndian.PutUint32(a[:], binary.BigEndian.Uint32(a[:])+uint32(i))
	return netip.AddrFrom4(a)
}

func backendAt(a netip.Addr) ruleset.Backend {
	return ruleset.Backend{Addr: netip.AddrPortFrom(a, 8080), Weight: 1}
}
