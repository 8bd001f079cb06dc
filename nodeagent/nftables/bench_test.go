package nftables

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/nodeagent/ruleset"
)

// sizes are Services × endpoints.
var sizes = []struct{ services, endpoints int }{{100, 10}, {1000, 10}, {5000, 10}, {10000, 2}}

// loaded returns a model of many Services of one family with a cluster IP, as the figures of others are for.
func loaded(b *testing.B, services, endpoints int) *kernelOf {
	k := newKernel(b)
	var keys []ruleset.Key
	for i := range services {
		s := service(i)
		s.Spec.Type, s.Spec.ClusterIPs = corev1.ServiceTypeClusterIP, s.Spec.ClusterIPs[:1]
		keys = append(keys, k.model.SetService(s))
		k.model.SetSlice(endpointSlices(s.Name, i*endpoints, endpoints)[0])
	}
	k.model.Update(keys...)
	return k
}

// used returns the processor's time that this process has used, in the kernel too.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLoad is everything into an empty kernel, in one transaction.
func BenchmarkLoad(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dx%d", size.services, size.endpoints), func(b *testing.B) {
			k, cpu := loaded(b, size.services, size.endpoints), time.Duration(0)
			for b.Loop() {
				cpu -= used()
				k.sync()
				cpu += used()
				b.StopTimer()
				if err := k.Cleanup(context.Background()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkRestart is a new process that finds all as it should be.
func BenchmarkRestart(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dx%d", size.services, size.endpoints), func(b *testing.B) {
			k := loaded(b, size.services, size.endpoints)
			k.sync()
			cpu := -used()
			for b.Loop() {
				if n := k.sync(); n != 0 {
					b.Fatalf("%d messages were written", n)
				}
			}
			b.ReportMetric(float64((cpu+used()).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// BenchmarkChange is one endpoint of a Service exchanged for another: from the EndpointSlice to the kernel's commit.
func BenchmarkChange(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%dx%d", size.services, size.endpoints), func(b *testing.B) {
			k := loaded(b, size.services, size.endpoints)
			k.sync()
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				service := i % size.services
				slice := endpointSlices(fmt.Sprintf("s%d", service), service*size.endpoints, size.endpoints)[0]
				slice.Endpoints[0].Addresses = []string{fmt.Sprintf("10.199.%d.%d", i>>8&255, i&255)}
				start := time.Now()
				k.update(k.model.SetSlice(slice)...)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkConnect is a TCP connection of a pod through the first and the last of many Services, and beside them.
func BenchmarkConnect(b *testing.B) {
	for _, services := range []int{10, 10000} {
		k := loaded(b, services, 1)
		k.sync()
		client, server := k.node.Pod(b, "client"), k.node.Pod(b, "server")
		server.ServeHTTP(b, 8080)
		slice := func(i int) {
			s := endpointSlices(fmt.Sprintf("s%d", i), 0, 1)[0]
			s.Endpoints[0].Addresses = []string{server.V4.String()}
			k.update(k.model.SetSlice(s)...)
		}
		slice(0)
		slice(services - 1)
		for name, to := range map[string]netip.AddrPort{
			"first": address(0), "last": address(services - 1), "no-Service": netip.AddrPortFrom(server.V4, 8080),
		} {
			b.Run(fmt.Sprintf("%d/%s", services, name), func(b *testing.B) {
				_ = client.Do(func() error {
					for b.Loop() {
						c, err := net.DialTimeout("tcp", to.String(), time.Second)
						if err != nil {
							b.Fatal(err)
						}
						_ = c.Close()
					}
					return nil
				})
			})
		}
	}
}

func address(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(service(i).Spec.ClusterIP), 80)
}
