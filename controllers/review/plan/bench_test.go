package plan

import (
	"fmt"
	"math/rand"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/scheduler"
)

// large returns a federation of 1,000 clusters in 100 zones of 10 regions, with 10,000 Deployments of 6 replicas in 6
// clusters each, and as many Services. The policies of its ten namespaces choose 100 clusters each, or all 1,000.
func large(b *testing.B, choose int) Input {
	rng := rand.New(rand.NewSource(1))
	in := Input{Now: reviewedAt, Info: &v1beta1.Info{Name: "fed", DNSZone: "example.test", DNSTTL: 15 * time.Second, FailoverMaxZones: 1}}
	for i := range 1000 {
		c := member(fmt.Sprintf("c%03d", i), fmt.Sprintf("r%d/z%d", i%10, i/10%10), -1)
		c.Status.Capacity = &v1beta1.ClusterCapacity{Nodes: 40, Free: []v1beta1.NodeClass{
			{Nodes: 20, Free: corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("6Gi"), "pods": resource.MustParse("60")}},
			{Nodes: 20, Free: corev1.ResourceList{"cpu": resource.MustParse("5"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("80")}}}}
		c.Labels = map[string]string{"group": fmt.Sprint(i / 100)}
		in.Clusters = append(in.Clusters, c)
	}
	for i := range 10 {
		p := &v1beta1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("n", i), Name: "p"}}
		p.Spec.ResourceSelectors = []v1beta1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
		if choose == 100 {
			p.Spec.Clusters = &v1beta1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"group": fmt.Sprint(i)}}}
		}
		in.Policies = append(in.Policies, p)
	}
	for i := range 10000 {
		clusters, addresses := "", ""
		for k, at := range rng.Perm(100)[:6] {
			at = at*10 + i%10 // of all
			if choose == 100 {
				at = i%10*100 + at/10
			}
			comma := ","[:min(k, 1)]
			clusters += fmt.Sprintf(`%s"c%03d":1`, comma, at)
			addresses += fmt.Sprintf(`%s{"cluster":"c%03d","items":[{"ip":"198.51.%d.%d"}]}`, comma, at, i%256, k+1)
		}
		u := replicas(fmt.Sprintf("w%05d", i), "{"+clusters+"}", nil)
		u.SetKind("Deployment")
		u.SetNamespace(fmt.Sprint("n", i%10))
		u.Object["spec"].(map[string]any)["template"] = map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"name": "c", "resources": map[string]any{"requests": map[string]any{"cpu": "500m", "memory": "512Mi"}}}}}}
		in.AddObject(u)
		s := service(fmt.Sprintf("w%05d", i), `{"items":[`+addresses+`]}`)
		s.SetNamespace(u.GetNamespace())
		in.AddNamed(s)
	}
	if len(in.Objects) != 10000 || len(in.Named) != 10000 {
		b.Fatal(len(in.Objects), len(in.Named))
	}
	return in
}

// BenchmarkReview reviews one zone of 1,000 clusters with 10,000 workloads, and compares with deciding all of them.
func BenchmarkReview(b *testing.B) {
	for _, choose := range []int{100, 1000} {
		in := large(b, choose)
		spec := v1beta1.FailoverReviewSpec{Zones: []string{"r3/z3"}}
		lost, _ := Lost(in.Clusters, spec)
		then := withLost(in.Clusters, lost, in.Now)
		run := func(name string, do func()) {
			b.Run(fmt.Sprintf("%s/choose=%d", name, choose), func(b *testing.B) {
				measured(b, do)
			})
		}
		run("moves", func() { replicaMoves(in, then, lost) })
		run("moves-all-decided", func() {
			w := scheduler.NewWorld(then, in.Policies)
			scheduler.DecideAll(in.Objects, w, in.Now)
			scheduler.Order(in.Objects, w)
		})
		run("records", func() { recordChanges(in, then) })
		run("review", func() { Review(in, spec) })
	}
}

// BenchmarkReviewOfAllNames decides all names of 10,000 Services in 1,000 clusters, before and after.
func BenchmarkReviewOfAllNames(b *testing.B) {
	in := large(b, 100)
	then := withLost(in.Clusters, []string{"c033"}, in.Now)
	measured(b, func() { wholeRecords(&in, then) })
}

// measured runs the benchmark and reports CPU time, which counts on a shared machine.
func measured(b *testing.B, do func()) {
	before := cpu(b)
	for range b.N {
		do()
	}
	b.ReportMetric(float64((cpu(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRefit compares the evaluation of a loss with a refit after every cluster has reported again, and one that would receive replicas has lost most of its room.
func BenchmarkRefit(b *testing.B) {
	in := large(b, 100)
	f := asFleet(&in)
	for name, spec := range map[string]v1beta1.FailoverReviewSpec{"zone": {Zones: []string{"r3/z3"}}, "region": {Regions: []string{"r3"}}} {
		lost, _ := Lost(in.Clusters, spec)
		var loss Loss
		b.Run(name+"/evaluate", func(b *testing.B) {
			measured(b, func() { loss = f.Lose(lost, in.Now) })
		})
		b.Run(name+"/refit", func(b *testing.B) {
			full, spent := loss.Room.Gets()[0], time.Duration(0)
			for i := range b.N {
				clusters := asRead(in.Clusters)
				for _, c := range clusters {
					if c.Name == full {
						c.Status.Capacity.Free[i%2].Nodes = 1
					}
				}
				f.SetWorld(clusters, in.Policies)
				before := cpu(b)
				if !f.Refit(loss.Room, in.Now) {
					b.Fatal("not all have places")
				}
				spent += cpu(b) - before
			}
			b.ReportMetric(float64(spent.Microseconds())/float64(b.N)/1000, "cpu-ms/op")
		})
	}
}
