package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/join"
)

// hostileRSS is what the federation's process may grow by beside one hostile member: its default limits, and as much again for what
// the garbage collector has not seen yet.
const hostileRSS = 2 << 30

// TestAHostileMemberHurtsNobody joins a member that does everything wrong, one thing after another: changes still arrive in the
// other members, names are answered, and memory is bounded. It prints the figures.
//
// HOSTILE_SECONDS=20 measures: as long with each hostile member, and as long with a process in its place that burns as much CPU and speaks to nobody. The
// 99th percentile may be a tenth higher beside the hostile one; a hundredth of some hundred changes is few, so it fails where nine tenths of confidence
// in both say that it is more. HOSTILE_ROUNDS=3 does both three times in turn, HOSTILE=lies,drip only some.
func TestAHostileMemberHurtsNobody(t *testing.T) {
	applyConfigMap(t, "beside-the-hostile")
	copies(t, "beside-the-hostile", names...)
	lasts := time.Duration(fromEnv("HOSTILE_SECONDS", 5)) * time.Second
	changes := watchArrivals(t, "beside-the-hostile")
	quiet := changes.measure(t, "quiet", lasts, 0)
	t.Logf("%-15s %v", "quiet", quiet)
	ways := strings.Split(cmp.Or(os.Getenv("HOSTILE"), "settings,endless-health,endless-lists,bomb-lists,drip,long-errors,redirects,garbage,malformed,lies"), ",")
	for _, how := range ways {
		t.Run(how, func(t *testing.T) {
			var beside, control besideFigures
			for round := range fromEnv("HOSTILE_ROUNDS", 1) {
				t.Run("beside", func(t *testing.T) {
					beside = beside.and(besideHostile(t, changes, how, round, lasts))
				})
				if cores := beside.otherCores() - quiet.otherCores(); measures && !t.Failed() {
					t.Run("control", func(t *testing.T) {
						control = control.and(besideBurner(t, changes, how, round, lasts, cores))
					})
				}
			}
			if t.Failed() {
				return
			}
			t.Logf("%-15s %v", how, beside)
			if grown := beside.rss - quiet.rss; grown > hostileRSS {
				t.Errorf("the federation's memory has grown by %d MiB, want at most %d", grown>>20, hostileRSS>>20)
			}
			if !measures {
				return
			}
			t.Logf("%-15s %v", "without it", control)
			low, _ := beside.bounds(.99)
			if _, high := control.bounds(.99); low > high+high/10 {
				t.Errorf("the 99th percentile is %v at least, and %v at most where a process that speaks to nobody uses as much CPU: want at most a tenth more", low, high)
			}
		})
	}
	t.Logf("%-15s %v", "quiet again", changes.measure(t, "again", lasts, 0))
}

// besideHostile measures while a hostile member is joined, from its first connection on.
func besideHostile(t *testing.T, changes *arrivals, how string, round uint64, lasts time.Duration) besideFigures {
	service := ""
	if how == "lies" && round == 0 {
		service = liedAbout(t)
	}
	pid := joinHostile(t, how, fmt.Sprintf("hostile-%s-%d", how, round))
	is := changes.measure(t, fmt.Sprintf("%s-%d", how, round), lasts, pid)
	if service != "" {
		liesLeadNowhere(t, service)
	}
	return is
}

// besideBurner measures while as much CPU is spent as the hostile member took.
func besideBurner(t *testing.T, changes *arrivals, how string, round uint64, lasts time.Duration, cores float64) besideFigures {
	time.Sleep(2 * time.Second) // until the member before has left
	pid, _ := aside(t, burnCores+"="+strconv.FormatFloat(max(cores, 0), 'f', 3, 64))
	return changes.measure(t, fmt.Sprintf("without-%s-%d", how, round), lasts, pid)
}

// knocks counts who connects to where the lies lead.
var knocks atomic.Int64

// liedAbout makes a Service that serves in each member, with a host and with checks at a port that is open at 127.0.0.1.
func liedAbout(t *testing.T) string {
	t.Helper()
	const name = "lied-about"
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = here.Close() })
	go func() {
		for c, err := here.Accept(); err == nil; c, err = here.Accept() {
			knocks.Add(1)
			_ = c.Close()
		}
	}()
	everywhere(t, name)
	settings := fmt.Sprintf(`{"hosts":["%s.%s"],"healthCheck":{"type":"TCP","port":%d,"periodSeconds":1,"timeoutSeconds":1}}`, name, s.env["DNS_ZONE"], here.Addr().(*net.TCPAddr).Port)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1beta1.DNSAnnotation: settings}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.fed.client.CoreV1().Services(ns).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// liesLeadNowhere: what the lying member says of its load balancer is known, and none of it is in any name's answer, in a slice of
// another member, or asked by a check.
func liesLeadNowhere(t *testing.T, name string) {
	t.Helper()
	eventually(t, 60*time.Second, func() string {
		service, err := s.fed.client.CoreV1().Services(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(service.Status.Conditions, v1beta1.ConditionDNSPublished)
		if c == nil || !strings.Contains(c.Message, "hostile-lies-0: load balancer address 127.0.0.1 is not used") {
			return fmt.Sprintf("condition %+v, annotations %v: want that the lies are refused", c, service.Annotations)
		}
		return ""
	})
	base := strings.Join([]string{name, ns, s.env["FEDERATION_NAME"], "svc"}, ".")
	asked := []string{name + "." + s.env["DNS_ZONE"], base + "." + s.env["DNS_ZONE"]}
	for place := range places(t) {
		asked = append(asked, base+"."+place+"."+s.env["DNS_ZONE"])
	}
	for begin := time.Now(); time.Since(begin) < 5*time.Second; time.Sleep(100 * time.Millisecond) {
		for _, host := range asked {
			for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
				if rcode, got := s.lookup(t, host, kind); rcode != "NOERROR" || slices.ContainsFunc(got, isALie) {
					t.Fatalf("%s answers %s %v", host, rcode, got)
				}
			}
		}
	}
	for _, member := range names {
		if _, known := slicesOf(t, member, name); slices.ContainsFunc(known, func(text string) bool {
			_, addresses, _ := strings.Cut(strings.TrimSuffix(text, " ready"), "=")
			return slices.ContainsFunc(strings.Split(addresses, ","), isALie)
		}) {
			t.Errorf("%s has slices with %q", member, known)
		}
	}
	failing, err := s.fed.client.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(t.Context(), v1beta1.DNSHealthChecksConfigMap, metav1.GetOptions{})
	if err != nil || strings.Contains(fmt.Sprint(failing.Data), "127.0.0.1") || strings.Contains(fmt.Sprint(failing.Data), "localhost") {
		t.Errorf("checks have been made at %v (%v)", failing.Data, err)
	}
	if n := knocks.Load(); n > 0 {
		t.Errorf("a port of 127.0.0.1 was connected to %d times", n)
	}
}

// places are the zones and regions of the clusters, as they are in names.
func places(t *testing.T) (all map[string]bool) {
	t.Helper()
	eventually(t, 60*time.Second, func() string {
		list, err := s.fed.dyn.Resource(v1beta1.ClustersResource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		all = map[string]bool{}
		for _, c := range list.Items {
			region, _, _ := unstructured.NestedString(c.Object, "status", "region")
			zones, _, _ := unstructured.NestedStringSlice(c.Object, "status", "zones")
			if all[region] = true; region == "" {
				return fmt.Sprintf("Cluster %s has no region", c.GetName())
			}
			for _, zone := range zones {
				all[strings.TrimPrefix(zone, region+"-")+"."+region] = true
			}
		}
		return ""
	})
	return all
}

// isALie reports whether an answer leads to whoever asks, to the link, or nowhere.
func isALie(answer string) bool {
	addr, err := netip.ParseAddr(answer)
	return strings.Contains(answer, "localhost") || err == nil && v1beta1.RefuseAddress(addr) != nil
}

// joinHostile makes a Cluster of a server that is hostile in one way, until the end of the test. It returns when it was connected to.
func joinHostile(t *testing.T, how, name string) (pid int) {
	t.Helper()
	pid, out := aside(t, hostileHow+"="+how, hostileBehind+"="+filepath.Join(s.dir, "members", beyond, "kubeconfig"), hostileRedirect+"="+s.fed.config.Host)
	var says hostileSays
	if line := nextLine(t, out, "the hostile member has not started"); json.Unmarshal([]byte(line), &says) != nil {
		t.Fatalf("the hostile member says %q", line)
	}
	like, err := s.fed.dyn.Resource(v1beta1.ClustersResource).Get(t.Context(), beyond, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uid, err := join.FederationUID(t.Context(), s.fed.client)
	if err != nil {
		t.Fatal(err)
	}
	token := accountToken(t, beyond, join.AccountName(uid))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: join.SecretName(name)}, Data: map[string][]byte{"token": []byte(token), "ca.crt": says.CA}}
	if _, err := s.fed.client.CoreV1().Secrets(v1beta1.FederationNamespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error {
		return s.fed.client.CoreV1().Secrets(v1beta1.FederationNamespace).Delete(ctx, secret.Name, background)
	})
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	cluster.SetGroupVersionKind(like.GroupVersionKind())
	cluster.SetName(name)
	for field, value := range map[string]any{
		"serverAddressByClientCIDRs": []any{map[string]any{"clientCIDR": "0.0.0.0/0", "serverAddress": says.Address}},
		"secretRef":                  map[string]any{"name": secret.Name},
	} {
		if err := unstructured.SetNestedField(cluster.Object, value, "spec", field); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.fed.dyn.Resource(v1beta1.ClustersResource).Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error {
		return s.fed.dyn.Resource(v1beta1.ClustersResource).Delete(ctx, name, background)
	})
	nextLine(t, out, "the federation has not asked the hostile member anything")
	return pid
}
