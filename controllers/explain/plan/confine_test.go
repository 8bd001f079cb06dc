package plan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestWhoMayNotListClusters: they see those that the placement names, by name or in its history, and neither how a member is reached nor what
// somebody else has in one.
func TestWhoMayNotListClusters(t *testing.T) {
	e := moving(t)
	e.Clusters = append(e.Clusters, clusterAt("other", time.Minute))
	e.Copies["east-b"] = CopyAnswer{Err: errors.New("dial tcp 192.0.2.7:6443: refused")}
	foreign := replicaSet(t, 77, &v1beta1.Placement{})
	foreign.SetGeneration(99)
	e.Copies["west-a"] = CopyAnswer{Copy: foreign}
	all := Explain(e)
	e.Confined = true
	x := Explain(e)
	if len(all.Clusters) != 5 || len(x.Clusters) != 3 {
		t.Fatalf("%d of %d clusters", len(x.Clusters), len(all.Clusters))
	}
	for i, name := range []string{"east-a", "east-b", "west-a"} {
		if x.Clusters[i].Name != name {
			t.Errorf("%s, want %s", x.Clusters[i].Name, name)
		}
	}
	if c := x.Clusters[2]; c.Copy != v1beta1.CopyConflict || c.Current != nil || c.Generation != 0 {
		t.Errorf("of somebody else's object: %+v", c)
	}
	text, _ := json.Marshal(x)
	for _, secret := range []string{"other", "west-b", "192.0.2.7"} {
		if strings.Contains(string(text), `"`+secret) || strings.Contains(string(text), secret+":") {
			t.Errorf("%q is in %s", secret, text)
		}
	}
	if c := x.Clusters[1]; c.Copy != v1beta1.CopyUnreadable || c.WaitReason != v1beta1.WaitsForAnswer || c.WaitsFor == "" {
		t.Errorf("%+v", c)
	}
}

// TestWhatAMemberSaysIsBounded: its error is a line.
func TestWhatAMemberSaysIsBounded(t *testing.T) {
	e := moving(t)
	e.Copies["east-b"] = CopyAnswer{Err: errors.New(strings.Repeat("no\n\x1b[31m", 1<<20))}
	if c := Explain(e).Clusters[1]; len(c.WaitsFor) > v1beta1.MaxText || strings.ContainsAny(c.WaitsFor, "\n\x1b") {
		t.Errorf("%q", c.WaitsFor)
	}
}

func TestTheLastEvents(t *testing.T) {
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(seenAt.Add(-ago)) }
	e := moving(t)
	for i := range 7 {
		e.Events = append(e.Events, corev1.Event{Type: "Normal", Reason: "Placed", Message: string(rune('a' + i)), LastTimestamp: at(time.Duration(10-i) * time.Minute)})
	}
	e.Events = append(e.Events, corev1.Event{Type: "Warning", Reason: "Refused", EventTime: metav1.NewMicroTime(seenAt)})
	x := Explain(e).Events
	if len(x) != mostEvents || x[0].Reason != "Refused" || x[0].Count != 1 || x[1].Message != "g" {
		t.Errorf("%+v", x)
	}
}
