// Command bench measures how fast objects reach all members of a running stack (`make up`), beside the
// limit in the same run: a bare client-go program that sends the same requests straight to the same
// members. It prints a Markdown table.
//
//	bench --dir _output/bench --objects 1000 --rate 20
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

type bench struct {
	dir     string
	objects int
	rate    int
	fed     kubernetes.Interface
	members map[string]kubernetes.Interface
}

// run is one way of bringing objects to the members.
type run struct {
	name  string
	burst bool
	bare  bool
}

// result is what a run took.
type result struct {
	run
	latencies []time.Duration // from apply to the object in all members, sorted
	whole     time.Duration   // from the first apply to the last object in all members
	cpu       time.Duration   // of the federation process
	rss       int64           // of the federation process at the end, bytes
}

func main() {
	b := &bench{}
	flag.StringVar(&b.dir, "dir", "_output/local", "folder of the running stack")
	flag.IntVar(&b.objects, "objects", 1000, "ReplicaSets to create in each run")
	flag.IntVar(&b.rate, "rate", 10, "creates a second in the steady runs")
	flag.Parse()
	if err := b.main(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) main() error {
	if err := b.connect(); err != nil {
		return err
	}
	ctx := context.Background()
	idle := b.process()
	var results []result
	for i, r := range []run{
		{"bare client, steady", false, true}, {"federation, steady", false, false},
		{"bare client, all at once", true, true}, {"federation, all at once", true, false},
	} {
		fmt.Fprintf(os.Stderr, "%s: %d ReplicaSets\n", r.name, b.objects)
		got, err := b.measure(ctx, r, fmt.Sprintf("bench-%d", i))
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		results = append(results, got)
	}
	b.print(idle, results)
	return nil
}

func (b *bench) connect() error {
	f, err := os.Open(filepath.Join(b.dir, "env"))
	if err != nil {
		return fmt.Errorf("no running stack: %w (start one with `make up`)", err)
	}
	defer f.Close()
	env := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), "=")
		env[key] = strings.Trim(value, `"'`)
	}
	if b.fed, err = client(env["FEDERATION_KUBECONFIG"]); err != nil {
		return err
	}
	b.members = map[string]kubernetes.Interface{}
	for _, name := range strings.Fields(env["MEMBERS"]) {
		if b.members[name], err = client(filepath.Join(b.dir, "members", name, "kubeconfig")); err != nil {
			return err
		}
	}
	return nil
}

func client(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return kubernetes.NewForConfig(config)
}

// measure creates the objects in a namespace of their own, waits for them in all members and cleans up.
func (b *bench) measure(ctx context.Context, r run, ns string) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := b.namespace(ctx, r, ns); err != nil {
		return result{}, err
	}
	seen := newArrivals(b.objects, len(b.members))
	for _, m := range b.members {
		if err := seen.watch(ctx, m, ns); err != nil {
			return result{}, err
		}
	}
	before := b.process()
	started := time.Now()
	applied, err := b.apply(ctx, r, ns)
	if err != nil {
		return result{}, err
	}
	select {
	case <-seen.all:
	case <-ctx.Done():
		return result{}, fmt.Errorf("not all objects arrived: %w", ctx.Err())
	}
	out := result{run: r, whole: time.Since(started)}
	time.Sleep(5 * time.Second) // reports settle: their CPU counts
	after := b.process()
	out.cpu, out.rss = after.cpu-before.cpu, after.rss
	for name, at := range applied {
		out.latencies = append(out.latencies, seen.at[name].Sub(at))
	}
	slices.Sort(out.latencies)
	return out, b.clean(ctx, r, ns)
}

// arrivals notes when each object has been seen in all members.
type arrivals struct {
	mu    sync.Mutex
	count map[string]int
	at    map[string]time.Time
	want  int
	each  int
	all   chan struct{}
}

func newArrivals(objects, members int) *arrivals {
	return &arrivals{count: map[string]int{}, at: map[string]time.Time{}, want: objects, each: members, all: make(chan struct{})}
}

func (a *arrivals) watch(ctx context.Context, member kubernetes.Interface, ns string) error {
	w, err := member.AppsV1().ReplicaSets(ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	go func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			if rs, ok := event.Object.(*appsv1.ReplicaSet); ok && event.Type == "ADDED" {
				a.arrived(rs.Name)
			}
		}
	}()
	return nil
}

func (a *arrivals) arrived(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count[name]++; a.count[name] == a.each {
		a.at[name] = time.Now()
		if len(a.at) == a.want {
			close(a.all)
		}
	}
}

// apply creates the objects and returns when each was sent.
func (b *bench) apply(ctx context.Context, r run, ns string) (map[string]time.Time, error) {
	parallel, pause := 48, time.Duration(0)
	if !r.burst {
		pause = time.Second / time.Duration(b.rate)
	}
	sent := map[string]time.Time{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	slots := make(chan struct{}, parallel)
	tick := time.Now()
	for i := range b.objects {
		name := fmt.Sprintf("web-%04d", i)
		time.Sleep(time.Until(tick))
		tick = tick.Add(pause)
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			mu.Lock()
			sent[name] = time.Now()
			mu.Unlock()
			if err := b.send(ctx, r, ns, name); err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return sent, failed
}

func (b *bench) send(ctx context.Context, r run, ns, name string) error {
	if !r.bare {
		_, err := b.fed.AppsV1().ReplicaSets(ns).Create(ctx, replicaSet(name, int32(len(b.members))), metav1.CreateOptions{})
		return err
	}
	errs := make(chan error, len(b.members))
	for _, m := range b.members {
		go func() {
			errs <- apply(ctx, m, ns, name)
		}()
	}
	for range b.members {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// apply sends what the federation sends to a member: a server-side apply.
func apply(ctx context.Context, m kubernetes.Interface, ns, name string) error {
	rs := replicaSet(name, 1)
	rs.APIVersion, rs.Kind = "apps/v1", "ReplicaSet"
	body, err := json.Marshal(rs)
	if err != nil {
		return err
	}
	force := true
	_, err = m.AppsV1().ReplicaSets(ns).Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "bench", Force: &force})
	return err
}

func replicaSet(name string, replicas int32) *appsv1.ReplicaSet {
	labels := map[string]string{"app": name}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
}

// apis are the places where a run makes its namespace.
func (b *bench) apis(r run) []kubernetes.Interface {
	if !r.bare {
		return []kubernetes.Interface{b.fed}
	}
	var out []kubernetes.Interface
	for _, m := range b.members {
		out = append(out, m)
	}
	return out
}

func (b *bench) namespace(ctx context.Context, r run, ns string) error {
	for _, api := range b.apis(r) {
		if _, err := api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, m := range b.members {
		if err := until(ctx, func() bool {
			_, err := m.CoreV1().ServiceAccounts(ns).Get(ctx, "default", metav1.GetOptions{})
			return err == nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// clean deletes the namespace and waits for it to be gone everywhere.
func (b *bench) clean(ctx context.Context, r run, ns string) error {
	// As kubectl does: without a policy, a federated object leaves its copies in the members.
	policy := metav1.DeletePropagationBackground
	for _, api := range b.apis(r) {
		if err := api.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			return err
		}
	}
	for _, api := range append(b.apis(run{bare: true}), b.fed) {
		if err := until(ctx, func() bool {
			_, err := api.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}); err != nil {
			return fmt.Errorf("namespace %s stays: %w", ns, err)
		}
	}
	return nil
}

func until(ctx context.Context, done func() bool) error {
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func (b *bench) print(idle usage, results []result) {
	fmt.Printf("%d ReplicaSets of 3 replicas, %d member clusters, %d cores. Steady: %d creates a second.\n\n", b.objects, len(b.members), runtime.NumCPU(), b.rate)
	fmt.Println("| run | apply → in all members p50 | p90 | p99 | objects/s | CPU of the federation | its RSS at the end |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, r := range results {
		cpu, rss := "–", "–"
		if !r.bare {
			cpu, rss = fmt.Sprintf("%.1f s", r.cpu.Seconds()), megabytes(r.rss)
		}
		fmt.Printf("| %s | %s | %s | %s | %.1f | %s | %s |\n", r.name, r.percentile(50), r.percentile(90), r.percentile(99),
			float64(b.objects)/r.whole.Seconds(), cpu, rss)
	}
	steadyBare, steady, atOnceBare, atOnce := results[0], results[1], results[2], results[3]
	fmt.Printf("\nAgainst the bare client in the same run: steady p50 %.1f ×, p99 %.1f ×; all at once %.2f of its rate. RSS of the federation process before: %s.\n",
		ratio(steady.at(50), steadyBare.at(50)), ratio(steady.at(99), steadyBare.at(99)), ratio(atOnceBare.whole, atOnce.whole), megabytes(idle.rss))
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func (r result) at(p int) time.Duration { return r.latencies[(len(r.latencies)-1)*p/100] }

func (r result) percentile(p int) string {
	return fmt.Sprintf("%.1f ms", float64(r.at(p).Microseconds())/1000)
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n>>20) }
