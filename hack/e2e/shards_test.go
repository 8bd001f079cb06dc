package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/shards"
	"federation/controllers/shards/plan"
)

const (
	shardReplicas = 3
	shardObjects  = 60
)

// TestReplicasShareTheShards has three controllers share the work, kills one, ends one, and starts it anew.
func TestReplicasShareTheShards(t *testing.T) {
	p := startReplicas(t)
	p.join(t)
	p.write(t, 0, "shard", shardObjects)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		_ = p.halves[0].fed.client.CoreV1().ConfigMaps(ns).DeleteCollection(ctx, background, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
		eventually(t, 60*time.Second, func() string {
			left, err := p.halves[0].fed.client.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
			if err != nil || len(left.Items) > 1 {
				return fmt.Sprintf("%d are left (%v)", len(left.Items), err)
			}
			return ""
		})
	})
	p.hold(t, shardObjects)
	for i, h := range p.halves {
		if h.measure(t, "federation_member_writes_total") == 0 {
			t.Errorf("replica %d has written nothing", i)
		}
	}

	p.halves[0].controllers.kill(t)
	killed := time.Now()
	p.changeAll(t, "after-kill")
	t.Logf("a replica was killed: all of its shards worked again %.1f s after it", time.Since(killed).Seconds())
	p.balanced(t, 1, 2)

	if err := p.halves[1].controllers.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	p.changeAll(t, "after-end")
	t.Logf("a replica was asked to end: all of its shards worked again %.1f s after it", time.Since(ended).Seconds())
	<-p.halves[1].controllers.ended
	p.balanced(t, 2)

	p.halves[1].controllers = p.halves[1].run()
	p.balanced(t, 1, 2)
	p.changeAll(t, "after-return")
	for _, i := range []int{1, 2} {
		if creates := p.halves[i].measure(t, `operation="create"`); i == 1 && creates > 0 {
			t.Errorf("the replica that returned has made %v copies, and all were there", creates)
		}
	}
}

// startReplicas starts an apiserver on an etcd of its own, and the controllers.
func startReplicas(t *testing.T) *pair {
	t.Helper()
	p := &pair{name: "shards", dir: filepath.Join(s.dir, "shards")}
	if err := os.RemoveAll(p.dir); err != nil {
		t.Fatal(err)
	}
	p.etcd = startEtcd(t, p.dir)
	t.Cleanup(func() { p.end(t) })
	dataDir := filepath.Join(p.dir, "0")
	p.process(t, "shards-apiserver", append([]string{"apiserver", "--data-dir=" + dataDir, "--secure-port=" + freePort(t)}, p.etcd...)...)
	for i := range shardReplicas {
		h := &half{dataDir: dataDir, dns: "127.0.0.1:" + freePort(t), metrics: "127.0.0.1:" + freePort(t)}
		h.run = func() *process {
			return p.process(t, "shards-"+strconv.Itoa(i), "controllers", "--name=ha", "--dns-zone=ha.test", "--dns-bind-address="+h.dns,
				"--kubeconfig="+filepath.Join(dataDir, "controllers.kubeconfig"), "--metrics-bind-address="+h.metrics)
		}
		p.halves = append(p.halves, h)
		p.startHalf(t, h, "parts")
	}
	t.Logf("balanced %.1f s after the last replica was started", p.balanced(t, 0, 1, 2).Seconds())
	return p
}

// balanced waits until these replicas, and no others, hold all shards, none two more than another.
func (p *pair) balanced(t *testing.T, replicas ...int) time.Duration {
	t.Helper()
	return eventually(t, 60*time.Second, func() string {
		lease, err := p.halves[0].fed.client.CoordinationV1().Leases(v1beta1.FederationNamespace).Get(t.Context(), shards.TableName, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		text := lease.Annotations[shards.TableAnnotation]
		table, err := plan.ParseTable(text)
		if err != nil {
			return err.Error()
		}
		holders := map[string]int{}
		for _, holder := range table {
			holders[holder]++
		}
		for holder, n := range holders {
			if n < v1beta1.Shards/len(replicas) || n > v1beta1.Shards/len(replicas)+1 {
				return fmt.Sprintf("%s holds %d: %s", holder, n, text)
			}
		}
		for _, i := range replicas {
			if pid := fmt.Sprintf("-%d-", p.halves[i].controllers.Process.Pid); !strings.Contains(text, pid) {
				return fmt.Sprintf("replica %d holds nothing: %s", i, text)
			}
			if held := p.halves[i].measure(t, "federation_shards_owned"); int(held) < v1beta1.Shards/len(replicas) {
				return fmt.Sprintf("replica %d says that it holds %v", i, held)
			}
		}
		return ""
	})
}

// changeAll changes all ConfigMaps at the federation, and waits until all members have the change.
func (p *pair) changeAll(t *testing.T, value string) {
	t.Helper()
	patch := []byte(`{"data":{"key":"` + value + `"}}`)
	for i := range shardObjects {
		name := fmt.Sprintf("%s-shard-%d", p.name, i)
		if _, err := p.halves[0].fed.client.CoreV1().ConfigMaps(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, 60*time.Second, func() string {
		for _, member := range haMembers {
			list, err := s.members[member].client.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{LabelSelector: v1beta1.ShardLabel})
			if err != nil {
				return err.Error()
			}
			changed := 0
			for _, c := range list.Items {
				if strings.HasPrefix(c.Name, p.name+"-") && c.Data["key"] == value {
					changed++
				}
			}
			if changed != shardObjects {
				return fmt.Sprintf("%s: %d of %d are %s", member, changed, shardObjects, value)
			}
		}
		return ""
	})
}

// measure sums up the lines of a replica's metrics that contain text. One that doesn't answer has 0.
func (h *half) measure(t *testing.T, text string) (sum float64) {
	t.Helper()
	answer, err := http.Get("http://" + h.metrics + "/metrics")
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(io.LimitReader(answer.Body, 16<<20)); lines.Scan(); {
		line := lines.Text()
		if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") && strings.Contains(line, text) {
			if v, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
				sum += v
			}
		}
	}
	return sum
}
