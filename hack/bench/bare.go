package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// job is what objects are sent where: to the bare client as JSON, and to the federation.
type job struct {
	Members   map[string]string // name → kubeconfig
	Namespace string
	Objects   int
	Replicas  int32
	Body      string // what the bare client applies, of the sample
	// Rate is objects a second; 0: as fast as it goes.
	Rate int
	// Writes under way at once to each member.
	Writes int
	// Divided: each object goes to one member in turn instead of to all.
	Divided bool
	// Watch: the bare client has informers of ReplicaSets and pods in each member, as who is to keep copies and to know what
	// room there is cannot do without, and ends when these have seen all.
	Watch bool
}

// sent is what came of a job: when each object was sent first, and what it cost the process.
type sent struct {
	At    []time.Time
	Began time.Time
	CPU   time.Duration
}

// runBare has a process of its own do a job as a bare client, and waits for it.
func runBare(ctx context.Context, j job) (sent, error) {
	self, err := os.Executable()
	if err != nil {
		return sent{}, err
	}
	cmd := exec.CommandContext(ctx, self, "bare")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return sent{}, err
	}
	cmd.Stderr = os.Stderr
	out := sent{Began: time.Now()}
	go func() {
		_ = json.NewEncoder(stdin).Encode(j) // a failure shows as the process's own
		_ = stdin.Close()
	}()
	text, err := cmd.Output()
	if err != nil {
		return sent{}, fmt.Errorf("the bare client: %w", err)
	}
	out.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return out, json.Unmarshal(text, &out.At)
}

// bareMain is the bare client's process: a job on stdin, times on stdout.
func bareMain(ctx context.Context, in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return err
	}
	var members []kubernetes.Interface
	var names []string
	for name := range j.Members {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m, err := connect(j.Members[name])
		if err != nil {
			return err
		}
		members = append(members, m)
	}
	seen := func(context.Context) error { return nil }
	if j.Watch {
		seen = j.watch(ctx, members)
	}
	at, err := j.send(ctx, members)
	if err != nil {
		return err
	}
	if err := seen(ctx); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(at)
}

// send gives each member its own workers and has them all go through the objects, at the job's rate.
func (j job) send(ctx context.Context, members []kubernetes.Interface) ([]time.Time, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	at := make([]time.Time, j.Objects)
	queues := make([]chan int, len(members))
	var wg sync.WaitGroup
	for n, m := range members {
		queues[n] = make(chan int, j.Objects)
		for range j.Writes {
			wg.Go(func() {
				for i := range queues[n] {
					if err := j.apply(ctx, m, objectName(i)); err != nil {
						cancel(err)
					}
				}
			})
		}
	}
	j.pace(func(i int) {
		at[i] = time.Now()
		for n := range queues {
			if !j.Divided || i%len(queues) == n {
				queues[n] <- i
			}
		}
	})
	for _, q := range queues {
		close(q)
	}
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	return at, nil
}

// watch starts informers in each member, and returns what waits until they have seen all objects.
func (j job) watch(ctx context.Context, members []kubernetes.Interface) (seen func(context.Context) error) {
	var sets []cache.SharedIndexInformer
	for _, m := range members {
		factory := informers.NewSharedInformerFactoryWithOptions(m, 0, informers.WithNamespace(j.Namespace))
		sets = append(sets, factory.Apps().V1().ReplicaSets().Informer())
		factory.Core().V1().Pods().Informer()
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
	}
	return func(ctx context.Context) error {
		return until(ctx, func() bool {
			return !slices.ContainsFunc(sets, func(i cache.SharedIndexInformer) bool { return len(i.GetStore().ListKeys()) < j.Objects })
		})
	}
}

// pace calls do for each object at the job's rate.
func (j job) pace(do func(int)) {
	next := time.Now()
	for i := range j.Objects {
		if j.Rate > 0 {
			time.Sleep(time.Until(next))
			next = next.Add(time.Second / time.Duration(j.Rate))
		}
		do(i)
	}
}
