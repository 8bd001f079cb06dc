package e2e

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/hack/procusage"
)

// besideFigures are of changes that go to the members which are not hostile.
type besideFigures struct {
	took       []time.Duration // sorted
	rss        int64           // the most
	lasted     time.Duration
	federation time.Duration // CPU that the federation spent
	others     time.Duration // CPU that the hostile server, or what burns in its place, and the member behind it spent
}

func (b besideFigures) quantile(q float64) time.Duration {
	return b.took[int(float64(len(b.took)-1)*q)]
}

// bounds are between what the quantile lies with nine tenths of confidence, by the binomial distribution of how many are below it.
func (b besideFigures) bounds(q float64) (low, high time.Duration) {
	n := float64(len(b.took))
	rank, off := n*q, 1.645*math.Sqrt(n*q*(1-q))
	return b.took[max(0, int(rank-off)-1)], b.took[min(len(b.took)-1, int(math.Ceil(rank+off)))]
}

func (b besideFigures) otherCores() float64 { return b.others.Seconds() / b.lasted.Seconds() }

func (b besideFigures) String() string {
	low, high := b.bounds(.99)
	return fmt.Sprintf("%4d changes: p50 %5.1f ms, p99 %5.1f ms (%.1f to %.1f); federation %.2f cores, %d MiB; the other side %.2f cores", len(b.took),
		b.quantile(.5).Seconds()*1e3, b.quantile(.99).Seconds()*1e3, low.Seconds()*1e3, high.Seconds()*1e3, b.federation.Seconds()/b.lasted.Seconds(), b.rss>>20, b.otherCores())
}

// and is of both windows together.
func (b besideFigures) and(more besideFigures) besideFigures {
	b.took = slices.Sorted(slices.Values(slices.Concat(b.took, more.took)))
	b.rss = max(b.rss, more.rss)
	b.lasted, b.federation, b.others = b.lasted+more.lasted, b.federation+more.federation, b.others+more.others
	return b
}

// arrivals are when a ConfigMap had a value in a member first. They are watched for, since to ask again and again would measure the asking.
type arrivals struct {
	name string
	came chan string
}

func watchArrivals(t *testing.T, name string) *arrivals {
	t.Helper()
	a := &arrivals{name, make(chan string, 1000)}
	for _, member := range names {
		w, err := s.members[member].client.CoreV1().ConfigMaps(ns).Watch(t.Context(), metav1.SingleObject(metav1.ObjectMeta{Name: name}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		go func() {
			for e := range w.ResultChan() {
				if c, ok := e.Object.(*corev1.ConfigMap); ok {
					a.came <- c.Data["key"]
				}
			}
		}()
	}
	return a
}

// measure changes the ConfigMap for a while, a change after the other has arrived everywhere. other is the process whose CPU is counted beside.
func (a *arrivals) measure(t *testing.T, value string, lasts time.Duration, other int) (b besideFigures) {
	t.Helper()
	pids := []int{pidOf(t, "members", beyond, "pid")}
	if other > 0 {
		pids = append(pids, other)
	}
	used := func() (federation, others time.Duration) {
		for _, pid := range pids {
			others += procusage.Of(pid).CPU
		}
		return procusage.Of(pidOf(t, "federation.pid")).CPU, others
	}
	federation, others := used()
	begin := time.Now()
	for n := 0; time.Since(begin) < lasts; n++ {
		text := value + "-" + strconv.Itoa(n)
		sent := time.Now()
		change(t, s.fed, a.name, text)
		for missing, late := len(names), time.After(time.Minute); missing > 0; {
			select {
			case is := <-a.came:
				if is == text {
					missing--
				}
			case <-late:
				t.Fatalf("%s has not come to %d of the members in a minute", text, missing)
			}
		}
		b.took = append(b.took, time.Since(sent))
		b.rss = max(b.rss, procusage.Of(pidOf(t, "federation.pid")).RSS)
		time.Sleep(20 * time.Millisecond)
	}
	slices.Sort(b.took)
	b.lasted = time.Since(begin)
	federationIs, othersIs := used()
	b.federation, b.others = federationIs-federation, othersIs-others
	return b
}

func pidOf(t *testing.T, file ...string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{s.dir}, file...)...))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// measures reports whether figures are wanted, and not only whether all arrives.
var measures = os.Getenv("HOSTILE_SECONDS") != ""

// aside starts this test's program as a process that stands for a machine of its own: while figures are taken it has the CPU only when nobody else
// wants it. On a machine that is busy otherwise it would not even start so. It ends with the test.
func aside(t *testing.T, env ...string) (pid int, says *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its policy
		var err error
		if measures {
			err = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
		}
		if err == nil {
			err = cmd.Start() // which inherits it
		}
		started <- err
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid, bufio.NewScanner(stdout)
}

// nextLine waits half a minute for what a process says, and fails with late.
func nextLine(t *testing.T, out *bufio.Scanner, late string) string {
	t.Helper()
	said := make(chan bool, 1)
	go func() { said <- out.Scan() }()
	select {
	case is := <-said:
		if !is {
			t.Fatalf("the process has ended: %v", out.Err())
		}
	case <-time.After(30 * time.Second):
		t.Fatal(late)
	}
	return out.Text()
}

// burnCores is the environment of the process that burns so many cores and speaks to nobody.
const burnCores = "BURN_CORES"

func burn(cores float64) {
	begin := time.Now()
	for range max(1, int(math.Ceil(cores))) {
		go func() {
			for {
				for spent() < cores*time.Since(begin).Seconds() {
				}
				time.Sleep(5 * time.Millisecond)
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// spent is the CPU time of this process, in seconds.
func spent() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return math.Inf(1)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// runsAside is the whole of a process that aside starts.
func runsAside() bool {
	var err error
	if how := os.Getenv(hostileHow); how != "" {
		err = serveHostile(how)
	} else if cores, parsed := strconv.ParseFloat(os.Getenv(burnCores), 64); parsed == nil {
		burn(cores)
	} else {
		return false
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "aside:", err)
		os.Exit(1)
	}
	return true
}
