package clusterregistry

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	k8sscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
	"federation/clusterregistry/health"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// fleet is a Registry over a federation in memory and fake members.
type fleet struct {
	t *testing.T
	*Registry
	clusters *dynamicfake.FakeDynamicClient
	core     *fake.Clientset
	status   map[string]any // that Clusters are created with: from before a restart

	mu      sync.Mutex
	engaged []*Member
}

// Engage remembers the member and asks for one informer.
func (f *fleet) Engage(_ context.Context, m *Member) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.engaged = append(f.engaged, m)
	m.Informers.ForResource(configMaps)
	return nil
}

func newFleet(t *testing.T) *fleet { return newFleetWith(t, func(*Options) {}) }

// newFleetWith is newFleet with other options, and before does what may not be done while the registry runs.
func newFleetWith(t *testing.T, change func(*Options), before ...func(*fleet)) *fleet {
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &fleet{
		t: t, clusters: dynamicfake.NewSimpleDynamicClient(scheme),
		core: fake.NewSimpleClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "the-federation"}}),
	}
	f.clusters.PrependReactor("patch", "clusters", f.apply)
	broadcaster := record.NewBroadcaster(record.WithContext(t.Context()))
	t.Cleanup(broadcaster.Shutdown)
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: f.core.CoreV1().Events("")})
	o := Options{Recorder: broadcaster.NewRecorder(k8sscheme.Scheme, corev1.EventSource{}), Policy: health.Policy{Period: 20 * time.Millisecond, Retry: 10 * time.Millisecond, Threshold: 2, Settle: 3, SlowThreshold: 100}, Timeout: 300 * time.Millisecond}
	change(&o)
	f.Registry = newRegistry(o, f.clusters, f.core, []netip.Addr{netip.MustParseAddr("127.0.0.1")})
	f.handover = 300 * time.Millisecond
	f.Add(f)
	for _, do := range before {
		do(f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return f
}

// apply does what a server-side apply of the status does, as far as it is used here: it leaves alone what is not
// mentioned, of conditions those of other types; but NodeHeartbeatsStale, FencesMissing and what is forbidden, which nobody else writes, go where they are not.
func (f *fleet) apply(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	applied := &unstructured.Unstructured{}
	if err := json.Unmarshal(patch.GetPatch(), &applied.Object); err != nil {
		return true, nil, err
	}
	tracked, err := f.clusters.Tracker().Get(v1beta1.ClustersResource, "", patch.GetName())
	if err != nil {
		return true, nil, err
	}
	u := tracked.(*unstructured.Unstructured).DeepCopy()
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	kept, _, _ := unstructured.NestedSlice(status, "conditions")
	delete(status, "inaccessibleResources")
	for field, value := range applied.Object["status"].(map[string]any) {
		status[field] = value
	}
	for _, was := range kept {
		kind := was.(map[string]any)["type"]
		own := kind == string(v1beta1.ClusterNodeHeartbeatsStale) || kind == string(v1beta1.ClusterFencesMissing)
		for _, is := range status["conditions"].([]any) {
			own = own || is.(map[string]any)["type"] == kind
		}
		if !own {
			status["conditions"] = append(status["conditions"].([]any), was)
		}
	}
	u.Object["status"] = status
	return true, u, f.clusters.Tracker().Update(v1beta1.ClustersResource, u, "")
}

func (f *fleet) join(name string, m *fakeMember, token string) {
	f.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: name, ResourceVersion: "1"},
		Data:       map[string][]byte{"token": []byte(token), "ca.crt": m.ca()},
	}
	if _, err := f.core.CoreV1().Secrets(secret.Namespace).Create(f.t.Context(), secret, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	f.create(name, m)
}

func (f *fleet) create(name string, m *fakeMember) {
	f.t.Helper()
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "federation/v1beta1", "kind": "Cluster", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"serverAddressByClientCIDRs": []any{map[string]any{"clientCIDR": "0.0.0.0/0", "serverAddress": m.address()}},
			"secretRef":                  map[string]any{"name": name},
		},
	}}
	if f.status != nil {
		cluster.Object["status"] = f.status
	}
	if _, err := f.clusters.Resource(v1beta1.ClustersResource).Create(f.t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// touch gives a Secret another version, as every write does.
func (f *fleet) touch(name string) { f.setToken(name, f.storedToken(name)) }

func (f *fleet) setToken(name, token string) {
	f.t.Helper()
	secrets := f.core.CoreV1().Secrets(v1beta1.FederationNamespace)
	s, err := secrets.Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	s.Data["token"], s.ResourceVersion = []byte(token), s.ResourceVersion+"1"
	if _, err := secrets.Update(f.t.Context(), s, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) cluster(name string) *v1beta1.Cluster {
	f.t.Helper()
	u, err := f.clusters.Resource(v1beta1.ClustersResource).Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	c, err := toCluster(u)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// eventually waits for something to become true. The time is for a machine that is very busy.
func (f *fleet) eventually(what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("never: %s", what)
		}
	}
}

func (f *fleet) eventuallyReady(name, reason string) {
	f.t.Helper()
	f.eventually(name+" "+reason, func() bool {
		c := f.cluster(name).Condition(v1beta1.ClusterReady)
		return c != nil && c.Reason == reason
	})
}

func (f *fleet) member(name string) *Member {
	f.t.Helper()
	var m *Member
	f.eventually("a connection to "+name, func() bool {
		m, _ = f.Member(name)
		return m != nil
	})
	return m
}

func TestAReadyClusterIsConnectedAndReported(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	s := f.cluster("east").Status
	if len(s.Zones) != 1 || s.Zones[0] != "a" || s.Region != "east" || s.KubernetesVersion != "v1.36.3" {
		t.Errorf("status %+v: a ready cluster has zones, region and version", s)
	}
	m := f.member("east")
	if len(f.engaged) != 1 || f.engaged[0] != m || m.FederationUID != "the-federation" || len(f.Members()) != 1 {
		t.Errorf("engaged %v, member %+v", f.engaged, m)
	}
}

func TestInformersHoldOnlyOursWithoutManagedFields(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	informer := f.member("east").Informers.ForResource(configMaps)
	f.eventually("the informer has synced", informer.HasSynced)
	for _, q := range east.seen("/configmaps?") {
		if !strings.Contains(q, "labelSelector=federation.kubernetes.io%2Fmanaged-by%3Dthe-federation") {
			t.Errorf("%s asks for what is not ours", q)
		}
	}
	if n := len(informer.GetStore().List()); n != 1 {
		t.Errorf("%d objects, want 1", n)
	}
	for _, obj := range informer.GetStore().List() {
		if fields := obj.(*unstructured.Unstructured).GetManagedFields(); len(fields) > 0 {
			t.Errorf("managedFields %v are kept", fields)
		}
	}
}

func TestALostClusterIsDisconnectedAndComesBackAsANewMember(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	first := f.member("east")
	east.gate.set(true)
	f.eventually("the member is lost", func() bool { return first.Context().Err() != nil })
	if _, err := f.Member("east"); !errors.Is(err, ErrNotConnected) || !errors.Is(context.Cause(first.Context()), ErrNotConnected) {
		t.Errorf("Member: %v, cause %v; want ErrNotConnected", err, context.Cause(first.Context()))
	}
	f.eventuallyReady("east", v1beta1.ReasonClusterNotReachable)
	c := f.cluster("east")
	if c.Condition(v1beta1.ClusterOffline).Status != corev1.ConditionTrue || c.Status.Region != "east" || len(c.Status.Zones) != 1 {
		t.Errorf("status %+v: want Offline, with zones and region kept", c.Status)
	}
	east.gate.set(false)
	if second := f.member("east"); second == first {
		t.Error("the member that came back is the one that was lost")
	}
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
}

func TestAHungClusterDelaysNoOther(t *testing.T) {
	f, hung, well := newFleet(t), newFakeMember(t), newFakeMember(t)
	hung.gate.set(true)
	f.join("hung", hung, "good")
	f.join("well", well, "good")
	m := f.member("well")
	f.eventuallyReady("hung", v1beta1.ReasonClusterNotReachable)
	if m.Context().Err() != nil {
		t.Error("the well cluster was lost with the hung one")
	}
}

func TestALostCredentialIsNotALostCluster(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "stale")
	f.eventuallyReady("east", health.ReasonCredentialRejected)
	if c := f.cluster("east").Condition(v1beta1.ClusterOffline); c.Status != corev1.ConditionFalse {
		t.Errorf("Offline is %+v", c)
	}
	f.setToken("east", "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
}

func TestASickClusterSaysWhatFails(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	m := f.member("east")
	east.set(func() { east.sick = true })
	f.eventually("the member is lost", func() bool { return m.Context().Err() != nil })
	f.eventuallyReady("east", v1beta1.ReasonClusterNotReady)
	if got, want := f.cluster("east").Condition(v1beta1.ClusterReady).Message, "/healthz responded without ok: 500, failed: etcd"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestAMissingSecretIsSaidAndHealsWhenItComes(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.create("east", east)
	f.eventuallyReady("east", health.ReasonMisconfigured)
	if got := f.cluster("east").Condition(v1beta1.ClusterReady).Message; !strings.Contains(got, `no Secret "east" in namespace federation-system`) {
		t.Errorf("message %q", got)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: "east"}, Data: map[string][]byte{"token": []byte("good"), "ca.crt": east.ca()}}
	if _, err := f.core.CoreV1().Secrets(secret.Namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
}

func TestATokenIsRenewedWithoutReconnecting(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	now := time.Now()
	old, renewed := serviceAccountToken(now.Add(-time.Hour), now.Add(time.Minute)), serviceAccountToken(now, now.Add(time.Hour))
	east.set(func() { east.token, east.mints = old, renewed })
	f.join("east", east, old)
	m := f.member("east")
	f.eventually("the renewed token is stored", func() bool {
		s, err := f.core.CoreV1().Secrets(v1beta1.FederationNamespace).Get(t.Context(), "east", metav1.GetOptions{})
		return err == nil && string(s.Data["token"]) == renewed
	})
	east.set(func() { east.token = renewed })
	checks := len(east.seen("/healthz"))
	f.eventually("more checks", func() bool { return len(east.seen("/healthz")) > checks+3 })
	if m.Context().Err() != nil {
		t.Errorf("the member was lost when its token was renewed: %v", context.Cause(m.Context()))
	}
}

// Who has changed the credential, as join does, waits for the first good check with it.
func TestTheFirstCheckWithAnotherCredentialIsWritten(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	was := f.cluster("east").Condition(v1beta1.ClusterReady)
	east.set(func() { east.bound = append(east.bound, "bound") }) // it accepts both
	f.setToken("east", boundToken(time.Now(), time.Now().Add(time.Hour), "bound"))
	f.eventually("a later check is written", func() bool {
		return f.cluster("east").Condition(v1beta1.ClusterReady).LastProbeTime.After(was.LastProbeTime.Time)
	})
	if is := f.cluster("east").Condition(v1beta1.ClusterReady); is.Reason != was.Reason || !is.LastTransitionTime.Equal(&was.LastTransitionTime) {
		t.Errorf("the condition was %+v and is %+v", was, is)
	}
	checks, writes := len(east.seen("/healthz")), len(f.clusters.Actions())
	f.eventually("more checks", func() bool { return len(east.seen("/healthz")) > checks+10 })
	if n := len(f.clusters.Actions()) - writes; n > 1 { // one of f.cluster
		t.Errorf("%d more requests to the federation after it was written once", n)
	}
}

// Who joins a cluster again waits for the first good check of what that join wrote, and of no join before it.
func TestTheFirstCheckOfAJoinIsWritten(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	probed := func() metav1.Time { return f.cluster("east").Condition(v1beta1.ClusterReady).LastProbeTime }
	f.setJoin("east", "first")
	was := probed()
	checks := len(east.seen("/healthz"))
	f.eventually("more checks", func() bool { return len(east.seen("/healthz")) > checks+10 })
	if is := probed(); !is.Equal(&was) {
		t.Errorf("a check at %v is written before the Cluster says which join it is; was %v", is, was)
	}
	f.joins("east", "first")
	f.eventually("a later check is written", func() bool { is := probed(); return is.After(was.Time) })
}

// joins says of a Cluster which join it is of.
func (f *fleet) joins(name, join string) {
	f.t.Helper()
	f.change(name, func(c *unstructured.Unstructured) {
		c.SetAnnotations(map[string]string{v1beta1.JoinAnnotation: join})
	})
}

// change writes a Cluster as somebody else does.
func (f *fleet) change(name string, edit func(*unstructured.Unstructured)) {
	f.t.Helper()
	clusters := f.clusters.Resource(v1beta1.ClustersResource)
	c, err := clusters.Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	edit(c)
	c.SetResourceVersion("7" + c.GetResourceVersion())
	if _, err := clusters.Update(f.t.Context(), c, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// setJoin says of a Secret which join it is of.
func (f *fleet) setJoin(name, join string) {
	f.t.Helper()
	secrets := f.core.CoreV1().Secrets(v1beta1.FederationNamespace)
	s, err := secrets.Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, v1beta1.JoinAnnotation, join)
	s.ResourceVersion += "1"
	if _, err := secrets.Update(f.t.Context(), s, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// storedToken is the token in a cluster's Secret.
func (f *fleet) storedToken(name string) string {
	s, err := f.core.CoreV1().Secrets(v1beta1.FederationNamespace).Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return string(s.Data["token"])
}

// A renewal ends the tokens of before, whoever has them, but not before the other processes had time to take up the new one.
func TestARenewalEndsTheTokensOfBefore(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	now := time.Now()
	old := boundToken(now.Add(-20*time.Hour), now.Add(4*time.Hour), "federation-before")
	east.set(func() { east.token, east.bound, east.order["federation-before"] = "", []string{"federation-before"}, 1 })
	f.join("east", east, old)
	m := f.member("east")
	accepts := func(token string) (good bool) {
		east.set(func() { good = east.accepts(token) })
		return good
	}
	f.eventually("the token is renewed", func() bool { return f.storedToken("east") != old })
	renewed := f.storedToken("east")
	if !accepts(renewed) || !accepts(old) {
		t.Errorf("right after the renewal the old token is accepted: %v, the new one: %v; want both", accepts(old), accepts(renewed))
	}
	if r, _ := credential.ParseToken(renewed); r.Lifetime() != 24*time.Hour || r.Secret == "" {
		t.Errorf("the new token: %+v", r)
	}
	f.eventually("the old token is void", func() bool { return !accepts(old) })
	if !accepts(renewed) || f.storedToken("east") != renewed {
		t.Error("the new token is void, or was replaced again")
	}

	patch := []byte(`{"metadata":{"annotations":{"` + credential.RotateAnnotation + `":"now"}}}`)
	if _, err := f.core.CoreV1().Secrets(v1beta1.FederationNamespace).Patch(t.Context(), "east", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	f.touch("east")
	f.eventually("the token is rotated, and the one before void", func() bool { return f.storedToken("east") != renewed && !accepts(renewed) })
	rotated := f.storedToken("east")
	s, err := f.core.CoreV1().Secrets(v1beta1.FederationNamespace).Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil || s.Annotations[credential.RotatedAnnotation] != "now" {
		t.Errorf("%v, %v", s.Annotations, err)
	}
	checks := len(east.seen("/healthz"))
	f.eventually("more probes", func() bool { return len(east.seen("/healthz")) > checks+10 })
	if m.Context().Err() != nil || f.storedToken("east") != rotated || !accepts(rotated) {
		t.Errorf("connection %v; the token was replaced again: %v", context.Cause(m.Context()), f.storedToken("east") != rotated)
	}
}

// Who copied the token and binds another one to a Secret of its own while it is good has nothing soon after: neither the Secret's age nor a label counts. Who asks
// for the token in use meanwhile, and stores it, keeps it.
func TestARenewalEndsTokensThatAThiefBound(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	now := time.Now()
	old := boundToken(now.Add(-20*time.Hour), now.Add(4*time.Hour), "federation-before")
	east.set(func() {
		east.token, east.bound, east.order["federation-before"], east.order["federation-joins"], east.order["federation-thief"] = "", []string{"federation-before"}, 1, 100, 101
	})
	f.join("east", east, old)
	f.eventually("the token is renewed", func() bool { return f.storedToken("east") != old })
	thief, joins := boundToken(now, now.Add(time.Hour), "federation-thief"), boundToken(now, now.Add(time.Hour), "federation-joins")
	east.set(func() { east.bound = append(east.bound, "federation-thief", "federation-joins", "unrelated") })
	accepts := func(token string) (good bool) {
		east.set(func() { good = east.accepts(token) })
		return good
	}
	f.eventually("the old token is void", func() bool { return !accepts(old) })
	if !accepts(joins) {
		t.Fatal("a newer Secret was not left for a while")
	}
	f.setToken("east", joins)
	f.eventually("the thief's token is void", func() bool { return !accepts(thief) })
	f.eventually("an event says so", func() bool {
		events, err := f.core.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == v1beta1.EventUnknownCredential && strings.Contains(e.Message, "federation-thief")
		})
	})
	time.Sleep(3 * f.handover)
	east.set(func() {
		if !slices.Equal(east.bound, []string{"federation-joins", "unrelated"}) {
			t.Errorf("Secrets in the member: %q", east.bound)
		}
	})
}

// Tokens last as long as is asked for, or as the cluster's fence allows, and are renewed at half of that.
func TestTokensLastAsLongAsIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct{ asked, longest, want time.Duration }{
		"shorter than by default": {20 * time.Minute, 0, 20 * time.Minute},
		"a week":                  {7 * 24 * time.Hour, 0, 7 * 24 * time.Hour},
		"longer than its fence":   {7 * 24 * time.Hour, 24 * time.Hour, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			f, east := newFleetWith(t, func(o *Options) { o.TokenLifetime = c.asked }), newFakeMember(t)
			old := boundToken(time.Now().Add(-20*time.Hour), time.Now().Add(4*time.Hour), "federation-before")
			east.set(func() {
				east.token, east.bound, east.order["federation-before"], east.longest = "", []string{"federation-before"}, 1, c.longest
			})
			f.join("east", east, old)
			f.eventually("the token is renewed", func() bool { return f.storedToken("east") != old })
			r, _ := credential.ParseToken(f.storedToken("east"))
			if r.Lifetime() != c.want || r.RenewAt().Sub(r.Issued) != c.want/2 || r.Secret == "" {
				t.Errorf("the new token: %+v, want one that lasts %s", r, c.want)
			}
		})
	}
}

// A member whose clock is far behind gives out tokens that are to be renewed at once. That is no reason to ask it again and again.
func TestATokenThatIsDueAtOnceIsNotRenewedAgainAndAgain(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	now := time.Now()
	due := serviceAccountToken(now.Add(-20*time.Hour), now.Add(time.Hour))
	east.set(func() { east.token, east.mints = due, due+"2" })
	f.join("east", east, due)
	f.eventually("the token is renewed", func() bool { return f.storedToken("east") != due })
	east.set(func() { east.token, east.mints = due+"2", due+"3" })
	checks := len(east.seen("/healthz"))
	f.eventually("more probes", func() bool { return len(east.seen("/healthz")) > checks+20 })
	if asked := len(east.seen("/token")); asked > 2 { // an answer may come too late on a busy machine
		t.Errorf("asked for %d tokens", asked)
	}
}

// In a member that joined an earlier version, the account may not make the Secret that tokens are bound to.
func TestATokenIsRenewedWhereNoneCanBeBound(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	now := time.Now()
	old, renewed := serviceAccountToken(now.Add(-time.Hour), now.Add(time.Minute)), serviceAccountToken(now, now.Add(time.Hour))
	east.set(func() { east.token, east.mints, east.forbids = old, renewed, secretsPath })
	f.join("east", east, old)
	f.eventually("the renewed token is stored", func() bool { return f.storedToken("east") == renewed })
}

func TestACertificateThatIsNotTrustedIsRefused(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: "east"}, Data: map[string][]byte{"token": []byte("good")}}
	if _, err := f.core.CoreV1().Secrets(secret.Namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.create("east", east)
	f.eventuallyReady("east", health.ReasonNotTrusted)
	if got := f.cluster("east").Condition(v1beta1.ClusterReady).Message; !strings.Contains(got, "x509") {
		t.Errorf("message %q, want the certificate's fault", got)
	}
	if len(east.seen("")) > 0 {
		t.Error("the token was sent to whom we do not trust")
	}
}

func TestLooksThatFindNothingNewWriteNothing(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	checks := len(east.seen("/healthz"))
	f.eventually("twenty more checks", func() bool { return len(east.seen("/healthz")) > checks+20 })
	writes := 0
	for _, a := range f.clusters.Actions() {
		if _, ok := a.(clienttesting.PatchAction); ok {
			writes++
		}
	}
	if writes != 1 {
		t.Errorf("%d writes of the status, want 1", writes)
	}
}

// restore puts a Cluster of before into the federation's API, as a backup of etcd does.
func (f *fleet) restore(c *unstructured.Unstructured) {
	f.t.Helper()
	if err := f.clusters.Tracker().Update(v1beta1.ClustersResource, c, ""); err != nil {
		f.t.Fatal(err)
	}
}

func TestWhatIsKnownIsWrittenAgainAfterARestoreOfTheFederation(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	version := 100
	f.clusters.PrependReactor("patch", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		done, obj, err := f.apply(action)
		if err == nil {
			version++
			u := obj.(*unstructured.Unstructured).DeepCopy()
			u.SetResourceVersion(strconv.Itoa(version))
			obj, err = u, f.clusters.Tracker().Update(v1beta1.ClustersResource, u, "")
		}
		return done, obj, err
	})
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	u, err := f.clusters.Resource(v1beta1.ClustersResource).Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	u.SetResourceVersion("50")
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "False", "reason": v1beta1.ReasonClusterNotReachable, "lastProbeTime": "2024-05-01T12:00:00Z", "lastTransitionTime": "2024-05-01T12:00:00Z",
	}}}
	f.restore(u)
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
}

// TestAWriteIsForTheVersionItWasDecidedFrom: another process has written to the Cluster, and the watch does not say so. What was decided
// without knowing that is not written over it; it is read past the cache, and looked at again.
func TestAWriteIsForTheVersionItWasDecidedFrom(t *testing.T) {
	east := newFakeMember(t)
	var mu sync.Mutex
	version, refused, checks, checksAfter := 100, 0, 0, 0
	versioned := func(obj runtime.Object) runtime.Object {
		u := obj.(*unstructured.Unstructured).DeepCopy()
		u.SetResourceVersion(strconv.Itoa(version))
		return u
	}
	f := newFleetWith(t, func(*Options) {}, func(f *fleet) {
		f.clusters.PrependReactor("get", "clusters", func(clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			obj, err := f.clusters.Tracker().Get(v1beta1.ClustersResource, "", "east")
			return true, versioned(obj), err
		})
		f.clusters.PrependReactor("patch", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			body := &unstructured.Unstructured{}
			if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &body.Object); err != nil {
				return true, nil, err
			}
			if is := strconv.Itoa(version); version > 101 && body.GetResourceVersion() != is {
				refused, checks = refused+1, len(east.seen("/healthz"))
				return true, nil, apierrors.NewConflict(v1beta1.ClustersResource.GroupResource(), "east", errors.New("it was changed"))
			}
			version, checksAfter = version+1, len(east.seen("/healthz"))
			_, obj, err := f.apply(action)
			obj = versioned(obj)
			return true, obj, errors.Join(err, f.clusters.Tracker().Update(v1beta1.ClustersResource, obj, ""))
		})
	})
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	mu.Lock()
	version = 200
	mu.Unlock()
	east.set(func() { east.sick = true })
	f.eventuallyReady("east", v1beta1.ReasonClusterNotReady)
	mu.Lock()
	defer mu.Unlock()
	if refused != 1 || version != 201 {
		t.Errorf("%d writes were refused, and %d done, want 1 of each", refused, version-200)
	}
	if checks != checksAfter {
		t.Errorf("there were %d more checks before the status was written, want 0", checksAfter-checks)
	}
}

func TestConditionsOfOthersAreLeftAlone(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	f.eventuallyReady("east", v1beta1.ReasonClusterReady)
	f.eventually("checks that know of the registry's own write", func() bool { return len(east.seen("/healthz")) > 10 })
	u, err := f.clusters.Resource(v1beta1.ClustersResource).Get(t.Context(), "east", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	conditions = append(conditions, map[string]any{"type": "FailedOver", "status": "False"})
	if err := unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.clusters.Resource(v1beta1.ClustersResource).Update(t.Context(), u, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.clusters.ClearActions()
	checks := len(east.seen("/healthz"))
	f.eventually("more checks", func() bool { return len(east.seen("/healthz")) > checks+5 })
	for _, a := range f.clusters.Actions() {
		if a.GetVerb() == "patch" {
			t.Errorf("a condition of somebody else made it write: %v", a)
		}
	}
	east.set(func() { east.sick = true })
	f.eventuallyReady("east", v1beta1.ReasonClusterNotReady)
	if f.cluster("east").Condition(v1beta1.ClusterFailedOver) == nil {
		t.Error("the condition of somebody else is gone")
	}
}

func TestAClusterThatLeavesIsDisconnected(t *testing.T) {
	f, east := newFleet(t), newFakeMember(t)
	f.join("east", east, "good")
	m := f.member("east")
	if err := f.clusters.Resource(v1beta1.ClustersResource).Delete(t.Context(), "east", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the member is lost", func() bool { return m.Context().Err() != nil })
	f.eventually("it is forgotten", func() bool { return len(f.Members()) == 0 })
}

// gaugesOf are the labels of what a metric has.
func gaugesOf(t *testing.T, metric string) string {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var labels strings.Builder
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if family.GetName() == metric {
					labels.WriteString(label.GetName() + "=" + label.GetValue() + " ")
				}
			}
		}
	}
	return labels.String()
}

// Of each member it is known whether fences hold our account, by asking it to write what they refuse, without writing it.
func TestTheClusterSaysThatItHasNoFences(t *testing.T) {
	f, fenced, open := newFleet(t), newFakeMember(t), newFakeMember(t)
	open.open = true
	f.join("fenced", fenced, "good")
	f.join("open", open, "good")
	f.eventually("the condition of the one", func() bool { return f.cluster("open").Condition(v1beta1.ClusterFencesMissing) != nil })
	f.eventually("the metric of the one", func() bool { return gaugesOf(t, "federation_cluster_condition") == "cluster=open type=FencesMissing " })
	f.eventually("the other was asked", func() bool { return len(fenced.seen("dryRun=All")) > 0 })
	f.eventually("it has the zones", func() bool { return len(f.cluster("fenced").Status.Zones) > 0 })
	if c := f.cluster("fenced").Condition(v1beta1.ClusterFencesMissing); c != nil {
		t.Errorf("with fences: %+v", c)
	}
	// It joins again, which gives it fences: that is what somebody who sees the condition does, and is not to wait for.
	open.mu.Lock()
	open.open = false
	open.mu.Unlock()
	f.joins("open", "again")
	f.eventually("the condition goes", func() bool { return f.cluster("open").Condition(v1beta1.ClusterFencesMissing) == nil })
}
