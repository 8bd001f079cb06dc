package progress

import (
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestProgressSaysOnlyWhatChanges checks that, and that a long wait prints that it is still waiting.
func TestProgressSaysOnlyWhatChanges(t *testing.T) {
	var out strings.Builder
	c, now := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}}, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	p := Progress{out: &out, every: 30 * time.Second}
	watch := func(times int, s *v1beta1.ClusterDrainStatus) {
		c.Status.Drain = s
		for range times {
			p.Print(c, now)
			now = now.Add(time.Second)
		}
	}
	api := v1beta1.DrainObject{Kind: "Deployment", Namespace: "default", Name: "api", Placed: 3, Current: 3, Ready: 3}
	web := v1beta1.DrainObject{Kind: "ReplicaSet", Namespace: "default", Name: "web", Current: 20, Ready: 20}
	moves := func() *v1beta1.ClusterDrainStatus {
		return &v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainEvicting, Objects: 7, Placed: 3, Current: web.Current + 3, Ready: web.Ready + 3, Waiting: []v1beta1.DrainObject{web, api}}
	}
	c.Spec.Drain = &v1beta1.ClusterDrain{}
	watch(65, moves())
	web.Message = "west-a: exceeded quota"
	watch(1, moves())
	web.Current, web.Ready = 7, 7
	watch(32, moves())
	watch(40, &v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainEvicting, Message: "what runs there is not known: it does not answer"})
	watch(3, &v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainBlocked, Message: "somebody took the taint off"})
	c.Spec.Drain = nil
	watch(200, &v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainReturning, Objects: 1, Placed: 3, Ready: 1, Waiting: []v1beta1.DrainObject{{Kind: "Deployment", Namespace: "default", Name: "api", Placed: 3, Current: 3, Ready: 1}}})
	c.Spec.Drain = &v1beta1.ClusterDrain{}
	watch(2, &v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainPublishing, Message: "DNS provider bind: i/o timeout"})
	until := metav1.NewTime(now.Add(17 * time.Second))
	watch(5, &v1beta1.ClusterDrainStatus{Phase: v1beta1.DrainExpiring, Until: &until})
	want, err := os.ReadFile("testdata/drain")
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("it printed:\n%s", out.String())
	}
}
