package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"federation/apiserver/apis/federation/v1beta1"
)

// figures are what one run took.
type figures struct {
	latencies []time.Duration // sorted; from apply to the object in all members
	whole     time.Duration   // from the start to the last object in all members
	writes    int             // that members needed at least
	cpu       time.Duration   // until the last object: of the bare client, or of the controllers if apart
	cpuAll    time.Duration   // of all processes of the federation, until all is reported
	rss, peak int64           // of all processes of the federation, bytes
}

func (f figures) at(percent int) time.Duration { return f.latencies[(len(f.latencies)-1)*percent/100] }
func (f figures) rate(objects int) float64     { return float64(objects) / f.whole.Seconds() }

// add puts another run of the same thing to these; RSS is that after the last.
func (f *figures) add(g figures) {
	f.latencies = append(f.latencies, g.latencies...)
	slices.Sort(f.latencies)
	f.whole, f.writes, f.cpu, f.cpuAll = f.whole+g.whole, f.writes+g.writes, f.cpu+g.cpu, f.cpuAll+g.cpuAll
	f.rss, f.peak = g.rss, max(f.peak, g.peak)
}

// steady has objects created at a steady rate: by the bare clients, and at the federation; and then the other way round, since
// members get slower with all that they have done before.
func (b *bench) steady(ctx context.Context, rate int) (out beside, err error) {
	out.rate = rate
	j := b.job("steady-bare", b.seconds*rate)
	j.Rate = rate
	runs := []struct {
		of  *figures
		run func(context.Context, job) (figures, error)
	}{{&out.bare, b.bare}, {&out.watching, b.watching}, {&out.fed, b.steadyFederation}}
	for range 2 {
		for _, r := range runs {
			one, err := r.run(ctx, j)
			if err != nil {
				return out, err
			}
			r.of.add(one)
		}
		slices.Reverse(runs)
	}
	return out, nil
}

func (b *bench) steadyFederation(ctx context.Context, j job) (out figures, err error) {
	j.Namespace, j.Replicas = "steady", int32(len(b.members))
	if err := makeNamespace(ctx, j.Namespace, b.fed.kube); err != nil {
		return out, err
	}
	if err := waitNamespace(ctx, j.Namespace, b.members); err != nil {
		return out, err
	}
	if out, err = b.measure(ctx, b.members, j, func() (sent, error) { return b.create(ctx, j) }); err != nil {
		return out, err
	}
	return out, removeNamespace(ctx, j.Namespace, b.members, b.fed.kube)
}

// hungFor is how many seconds objects are created for while a member hangs: less than until it is failed over, which
// is another thing to measure. So it is done several times, for more objects.
const (
	hungFor   = 12
	hungTimes = 3
)

// hung has objects created at the lowest steady rate, with all members well and then with the first one hung, and
// looks at the others.
func (b *bench) hung(ctx context.Context) (well, hung figures, err error) {
	pid, err := memberPid(b.root, b.names[0])
	if err != nil {
		return well, hung, err
	}
	for range hungTimes {
		for _, run := range []struct {
			namespace string
			signal    syscall.Signal
			out       *figures
		}{{"well", syscall.SIGCONT, &well}, {"hung", syscall.SIGSTOP, &hung}} {
			one, err := b.signalled(ctx, run.namespace, pid, run.signal)
			if err != nil {
				return well, hung, err
			}
			run.out.add(one)
		}
	}
	return well, hung, nil
}

// signalled has objects created from when a signal is sent to the first member, and looks at the others.
func (b *bench) signalled(ctx context.Context, namespace string, pid int, signal syscall.Signal) (out figures, err error) {
	j := b.job(namespace, hungFor*b.rates[0])
	j.Rate, j.Replicas = b.rates[0], int32(len(b.members))
	if err := makeNamespace(ctx, j.Namespace, b.fed.kube); err != nil {
		return out, err
	}
	if err := waitNamespace(ctx, j.Namespace, b.members); err != nil {
		return out, err
	}
	out, err = b.measure(ctx, b.without(b.names[0]), j, func() (sent, error) {
		if err := syscall.Kill(pid, signal); err != nil {
			return sent{}, err
		}
		return b.create(ctx, j)
	})
	if again := syscall.Kill(pid, syscall.SIGCONT); err == nil {
		err = again
	}
	if err != nil {
		return out, err
	}
	if err := b.fed.waitClusters(ctx, b.names); err != nil {
		return out, err
	}
	return out, removeNamespace(ctx, j.Namespace, b.members, b.fed.kube)
}

// without returns all members but one.
func (b *bench) without(name string) map[string]kubernetes.Interface {
	left := maps.Clone(b.members)
	delete(left, name)
	return left
}

// stored has the controllers start where all objects are stored already, and members are empty. It leaves
// the objects in place, for the restart.
func (b *bench) stored(ctx context.Context) (out beside, err error) {
	j := b.job("stored-bare", b.objects)
	if out.bare, err = b.bare(ctx, j); err != nil {
		return out, err
	}
	if out.watching, err = b.watching(ctx, j); err != nil {
		return out, err
	}
	b.fed.stop()
	if err := b.fed.startAPI(ctx); err != nil {
		return out, err
	}
	j.Namespace, j.Replicas = "stored", int32(len(b.members))
	if err := makeNamespace(ctx, j.Namespace, b.fed.kube); err != nil {
		return out, err
	}
	began := time.Now()
	if _, err := b.create(ctx, j); err != nil {
		return out, err
	}
	b.say("stored %d objects in %s", j.Objects, time.Since(began).Round(time.Second))
	out.fed, err = b.measure(ctx, b.members, j, func() (sent, error) {
		return sent{Began: time.Now(), At: []time.Time{}}, b.fed.startControllers()
	})
	return out, err
}

// rest is how long a process is given to give back what it has taken while it was busy.
const rest = 15 * time.Second

// restarted is what a restart took.
type restarted struct {
	ready  time.Duration // from the process's start until its API was ready
	fresh  time.Duration // from there until an object that was made then was in all members
	quiet  time.Duration // from there until the process was quiet
	writes int           // changes that members saw of what was in place
	figures
}

// restart starts the federation anew with everything in place.
func (b *bench) restart(ctx context.Context) (out restarted, err error) {
	if err := b.calm(ctx); err != nil {
		return out, err
	}
	b.fed.stop()
	const fresh = "fresh"
	was, err := watchArrivals(ctx, b.members, "stored", b.objects, inAll(len(b.members)))
	if err != nil {
		return out, err
	}
	defer was.close()
	now, err := watchArrivals(ctx, b.members, fresh, 10, inAll(len(b.members)))
	if err != nil {
		return out, err
	}
	defer now.close()
	if err := b.fed.startAll(ctx); err != nil {
		return out, err
	}
	out.ready = b.fed.lastReady.Sub(b.fed.lastStart)
	if err := makeNamespace(ctx, fresh, b.fed.kube); err != nil {
		return out, err
	}
	j := b.job(fresh, 10)
	j.Replicas = int32(len(b.members))
	if _, err := b.create(ctx, j); err != nil {
		return out, err
	}
	if err := now.wait(); err != nil {
		return out, err
	}
	out.fresh = now.last().Sub(b.fed.lastReady)
	out.quiet = settle(ctx, time.Minute, b.fed.serve).Sub(b.fed.lastReady)
	was.mu.Lock()
	out.writes = was.changes
	was.mu.Unlock()
	time.Sleep(rest)
	u := b.fed.serve.use()
	out.rss, out.peak, out.cpuAll = u.RSS, u.Peak, u.CPU
	if err := removeNamespace(ctx, fresh, b.members, b.fed.kube); err != nil {
		return out, err
	}
	return out, removeNamespace(ctx, "stored", b.members, b.fed.kube)
}

// moved is what a failover took.
type moved struct {
	noticed time.Duration // from the cluster's death until it counted as not ready
	after   time.Duration // from the end of the grace period until all replicas were asked of the others
	figures
}

// failover kills the first member and waits until the others have been asked for all its replicas.
func (b *bench) failover(ctx context.Context) (bare figures, out moved, err error) {
	j := b.job("moves", b.moves)
	j.Replicas = int32(len(b.members))
	if err := makeNamespace(ctx, j.Namespace, b.fed.kube); err != nil {
		return bare, out, err
	}
	placed, err := watchArrivals(ctx, b.members, j.Namespace, j.Objects, inAll(len(b.members)))
	if err != nil {
		return bare, out, err
	}
	defer placed.close()
	if _, err := b.create(ctx, j); err != nil {
		return bare, out, err
	}
	if err := placed.wait(); err != nil {
		return bare, out, err
	}
	settle(ctx, time.Minute, b.fed.processes()...)
	if err := b.calm(ctx); err != nil {
		return bare, out, err
	}
	lost, left := b.names[0], b.without(b.names[0])
	if bare, err = b.bareMoves(ctx, left); err != nil {
		return bare, out, err
	}
	taken, err := watchArrivals(ctx, left, j.Namespace, j.Objects, summing(j.Replicas))
	if err != nil {
		return bare, out, err
	}
	defer taken.close()
	pid, err := memberPid(b.root, lost)
	if err != nil {
		return bare, out, err
	}
	before, killed := totalCPU(b.fed.processes()), time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return bare, out, err
	}
	if err := until(ctx, func() bool { return b.fed.condition(ctx, lost, v1beta1.ClusterReady)["status"] != "True" }); err != nil {
		return bare, out, err
	}
	noticed := time.Now()
	if err := taken.wait(); err != nil {
		return bare, out, err
	}
	out.noticed, out.after, out.writes = noticed.Sub(killed), taken.last().Sub(noticed.Add(grace)), j.Objects
	settle(ctx, time.Minute, b.fed.processes()...)
	out.cpuAll = totalCPU(b.fed.processes()) - before
	return bare, out, nil
}

// bareMoves has the bare client make the writes of a failover: one for each object, in one of the members left.
func (b *bench) bareMoves(ctx context.Context, left map[string]kubernetes.Interface) (figures, error) {
	j := b.job("moves-bare", b.moves)
	return b.bareThen(ctx, j, func(base figures) (figures, error) {
		again := j
		again.Members = map[string]string{}
		for name := range left {
			again.Members[name] = b.kubeconfig(name)
		}
		again.Divided, again.Replicas = true, 2
		a, err := watchArrivals(ctx, left, j.Namespace, j.Objects, summing(int32(len(left))+1))
		if err != nil {
			return base, err
		}
		defer a.close()
		did, err := runBare(ctx, again)
		if err != nil {
			return base, err
		}
		if err := a.wait(); err != nil {
			return base, err
		}
		return figures{whole: a.last().Sub(did.Began), writes: j.Objects, cpu: did.CPU}, nil
	})
}

func (b *bench) job(ns string, objects int) job {
	j := job{Members: map[string]string{}, Namespace: ns, Objects: objects, Replicas: 1, Writes: b.writes, Body: b.body}
	for _, name := range b.names {
		j.Members[name] = b.kubeconfig(name)
	}
	return j
}

// bare has the bare client do a job in a namespace of its own.
func (b *bench) bare(ctx context.Context, j job) (figures, error) { return b.bareThen(ctx, j, nil) }

// watching is bare with informers.
func (b *bench) watching(ctx context.Context, j job) (figures, error) {
	j.Namespace, j.Watch = j.Namespace+"-watching", true
	return b.bare(ctx, j)
}

// bareThen is bare, with something more before all is removed.
func (b *bench) bareThen(ctx context.Context, j job, then func(figures) (figures, error)) (out figures, err error) {
	apis := b.apis()
	if err := makeNamespace(ctx, j.Namespace, apis...); err != nil {
		return out, err
	}
	if err := waitNamespace(ctx, j.Namespace, b.members); err != nil {
		return out, err
	}
	out, err = b.measure(ctx, b.members, j, func() (sent, error) { return runBare(ctx, j) })
	if err == nil && then != nil {
		out, err = then(out)
	}
	if err != nil {
		return out, err
	}
	return out, removeNamespace(ctx, j.Namespace, b.members, apis...)
}

// restingMember is what a member takes at rest, in cores: a control plane and the heartbeats of some nodes, twice over.
const restingMember = 0.2

// calm waits until the members have done what is left of the scenario before: pods are made and removed long after the objects.
func (b *bench) calm(ctx context.Context) error {
	var members []*process
	for _, name := range b.names {
		pid, err := memberPid(b.root, name)
		if err != nil {
			return err
		}
		members = append(members, &process{pid: pid})
	}
	settleAt(ctx, 3*time.Minute, restingMember*float64(len(members)), members...)
	return nil
}

func (b *bench) apis() (out []kubernetes.Interface) {
	for _, name := range b.names {
		out = append(out, b.members[name])
	}
	return out
}

// measure has the objects of a job made and waits for them in some members.
func (b *bench) measure(ctx context.Context, in map[string]kubernetes.Interface, j job, do func() (sent, error)) (out figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	if err := b.calm(ctx); err != nil {
		return out, err
	}
	a, err := watchArrivals(ctx, in, j.Namespace, j.Objects, inAll(len(in)))
	if err != nil {
		return out, err
	}
	defer a.close()
	b.say("%s: begins", j.Namespace)
	before := totalCPU(b.fed.processes())
	did, err := do()
	if err != nil {
		return out, err
	}
	if err := a.wait(); err != nil {
		return out, err
	}
	out.whole, out.writes, out.cpu = a.last().Sub(did.Began), j.Objects*len(in), did.CPU
	if did.CPU == 0 {
		out.cpu = b.fed.controls.use().CPU
	}
	for i, at := range did.At {
		out.latencies = append(out.latencies, a.at[objectName(i)].Sub(at))
	}
	slices.Sort(out.latencies)
	b.say("%s: in all members after %.1f s, CPU %.1f s", j.Namespace, out.whole.Seconds(), max(did.CPU, totalCPU(b.fed.processes())-before).Seconds())
	if len(out.latencies) > 0 {
		b.say("%s: p50 %s, p90 %s, p99 %s", j.Namespace, ms(out.at(50)), ms(out.at(90)), ms(out.at(99)))
	}
	if did.CPU == 0 {
		settle(ctx, 10*time.Minute, b.fed.processes()...) // reports of thousands of objects take minutes
		b.say("%s: settled", j.Namespace)
	}
	out.cpuAll = totalCPU(b.fed.processes()) - before
	for _, p := range b.fed.processes() {
		u := p.use()
		out.rss, out.peak = out.rss+u.RSS, out.peak+u.Peak
	}
	return out, nil
}

// evenly has each cluster get its replica in the end, also one that was not ready for a moment.
const evenly = `{"rebalance":true,"clusters":{"*":{"weight":1}}}`

// create creates a job's objects at the federation.
func (b *bench) create(ctx context.Context, j job) (sent, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := sent{Began: time.Now(), At: make([]time.Time, j.Objects)}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 3*j.Writes)
	j.pace(func(i int) {
		out.At[i] = time.Now()
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			rs := replicaSet(objectName(i), j.Replicas)
			rs.Annotations = map[string]string{v1beta1.ReplicaSetPreferencesAnnotation: evenly}
			if _, err := b.fed.kube.AppsV1().ReplicaSets(j.Namespace).Create(ctx, rs, metav1.CreateOptions{}); err != nil {
				cancel(fmt.Errorf("create %s: %w", objectName(i), err))
			}
		})
	})
	wg.Wait()
	return out, context.Cause(ctx)
}
