package mcs

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

const (
	benchMembers, benchServices, benchEndpoints = 10, 200, 50

	// benchPace is the time between changes: 20 a second.
	benchPace = 50 * time.Millisecond
)

// BenchmarkTenMembers measures, over APIs in memory, how soon all members have the endpoints of what is exported in one of them, after an export, a change
// of an endpoint, and the loss of a cluster once it is noticed, and what idle members are written.
//
//	go test ./controllers/mcs -run - -bench TenMembers -benchtime 1x
func BenchmarkTenMembers(b *testing.B) {
	for b.Loop() {
		var names []string
		for i := range benchMembers {
			names = append(names, fmt.Sprintf("m%d", i))
		}
		f := newFleet(b, names...)
		for i := range benchServices {
			var addresses []string
			for e := range benchEndpoints {
				addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d", i%benchMembers, i, e+1))
			}
			f.exporter(i).serve(b, benchService(i), addresses...)
		}
		stop := f.start(b, "")
		time.Sleep(time.Second)
		measureTenMembers(b, f)
		stop()
	}
}

func measureTenMembers(b *testing.B, f *fleet) {
	s := follow(b, f)
	report := func(what string, all []time.Duration) {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Milliseconds()), what+"-p50-ms")
		b.ReportMetric(float64(all[len(all)*99/100].Milliseconds()), what+"-p99-ms")
	}
	report("export", s.each(b, benchServices, func(i int) { f.exporter(i).create(b, "ServiceExport", benchService(i), "") }, benchEndpoints))
	f.written()
	report("change", s.each(b, benchServices, func(i int) {
		f.exporter(i).patch(b, "EndpointSlice", benchService(i)+"-x", `{"endpoints":[{"addresses":["10.200.0.1"],"conditions":{"ready":true}}]}`)
	}, 1))
	b.ReportMetric(float64(f.written())/benchServices/benchMembers, "writes/change-and-member")

	begin := time.Now()
	for n := range 400 { // of one Service, in twenty seconds
		f.exporter(0).patch(b, "EndpointSlice", benchService(0)+"-x", fmt.Sprintf(`{"endpoints":[{"addresses":["10.201.%d.%d"],"conditions":{"ready":true}}]}`, n/100, 1+n%100))
		time.Sleep(benchPace)
	}
	took := time.Since(begin).Seconds()
	time.Sleep(2 * time.Second)
	b.ReportMetric(float64(f.written())/benchMembers/took, "writes/member-and-s-at-20-changes/s")
	time.Sleep(10 * time.Second)
	b.ReportMetric(float64(f.written()), "idle-writes-in-10s")

	for i := range benchServices { // another cluster has each, too: a lost cluster's endpoints are out of use only where there are others
		if exporter := f.members["m1"]; exporter != f.exporter(i) {
			exporter.serve(b, benchService(i), "10.202.0.1")
			exporter.create(b, "ServiceExport", benchService(i), "")
		}
	}
	time.Sleep(5 * time.Second)
	lost := s.lost("m0")
	begin = time.Now()
	f.ready(b, "m0", false)
	b.ReportMetric(float64(lost(b).Sub(begin).Milliseconds()), "lost-all-not-ready-ms")
}

func benchService(i int) string { return fmt.Sprintf("s%d", i) }

func (f *fleet) exporter(i int) *api { return f.members[fmt.Sprintf("m%d", i%benchMembers)] }

// written returns how much members were written since the last call.
func (f *fleet) written() (all int) {
	for _, m := range f.members {
		all += len(m.read())
	}
	return all
}

// seen is what members have, by watches.
type seen struct {
	mu    sync.Mutex
	ready map[string]int // ready endpoints, by member, source cluster and Service
	at    map[string]time.Time
}

func follow(b *testing.B, f *fleet) *seen {
	s := &seen{ready: map[string]int{}, at: map[string]time.Time{}}
	for name, m := range f.members {
		w, err := m.others.Resource(endpointSlices).Namespace("shop").Watch(b.Context(), metav1.ListOptions{LabelSelector: mcsv1beta1.LabelSourceCluster})
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			for e := range w.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok {
					s.take(name, u)
				}
			}
		}()
	}
	return s
}

func (s *seen) take(member string, u *unstructured.Unstructured) {
	list, _, _ := unstructured.NestedSlice(u.Object, "endpoints")
	ready := 0
	for _, e := range list {
		if is, _, _ := unstructured.NestedBool(e.(map[string]any), "conditions", "ready"); is {
			ready++
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := member + " " + u.GetLabels()[mcsv1beta1.LabelSourceCluster] + " " + u.GetLabels()[mcsv1beta1.LabelServiceName]
	s.ready[key], s.at[key] = ready, time.Now()
}

// await returns when the last of these had that many ready endpoints.
func (s *seen) await(b *testing.B, keys []string, ready int) (last time.Time) {
	for end := time.Now().Add(time.Minute); len(keys) > 0; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		keys = slices.DeleteFunc(keys, func(key string) bool {
			if n, there := s.ready[key]; !there || n != ready {
				return false
			}
			if at := s.at[key]; at.After(last) {
				last = at
			}
			return true
		})
		s.mu.Unlock()
		if time.Now().After(end) {
			b.Fatalf("%d slices have not %d ready endpoints, the first is %s", len(keys), ready, keys[0])
		}
	}
	return last
}

// each does something for each Service, in the pace, and returns how long it took until all members had that many endpoints ready of each.
func (s *seen) each(b *testing.B, services int, do func(i int), ready int) []time.Duration {
	took := make([]time.Duration, services)
	var group sync.WaitGroup
	for i := range services {
		begin := time.Now()
		do(i)
		group.Go(func() {
			var keys []string
			for m := range benchMembers {
				keys = append(keys, fmt.Sprintf("m%d m%d %s", m, i%benchMembers, benchService(i)))
			}
			took[i] = s.await(b, keys, ready).Sub(begin)
		})
		time.Sleep(benchPace)
	}
	group.Wait()
	return took
}

// lost returns what waits until all that others have of a cluster is not ready.
func (s *seen) lost(cluster string) func(b *testing.B) time.Time {
	var keys []string
	for i := range benchServices {
		if fmt.Sprintf("m%d", i%benchMembers) == cluster {
			for m := range benchMembers {
				keys = append(keys, fmt.Sprintf("m%d %s %s", m, cluster, benchService(i)))
			}
		}
	}
	return func(b *testing.B) time.Time { return s.await(b, keys, 0) }
}
