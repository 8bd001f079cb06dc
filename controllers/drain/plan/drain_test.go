package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

var drainedAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func weight(n int32) *int32 { return &n }

// standing is how a cluster stands between serving and drained.
func standing(c *v1beta1.Cluster) string { return fmt.Sprint(c.DNSWeight(), c.Spec.Taints) }

func TestNextDrainStep(t *testing.T) {
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}}
	const ttl = 15 * time.Second
	expect := func(at time.Time, want Step, wait time.Duration) {
		t.Helper()
		if step, left, err := Next(c, at, ttl, nil); step != want || left != wait || err != nil {
			t.Errorf("%s: %s %s %v, want %s %s", standing(c), step, left, err, want, wait)
		}
	}
	expect(drainedAt, StepWeight, 0)
	Begin(c, drainedAt)
	expect(drainedAt.Add(5*time.Second), StepTTL, 12*time.Second)
	expect(drainedAt.Add(17*time.Second), StepTaint, 0)
	AddTaint(c, Taint)
	expect(drainedAt, StepMove, 0)
	AddTaint(c, Cordon)
	expect(drainedAt, StepMove, 0) // it is looked at again
	c.Spec.DNSWeight = weight(7)
	expect(drainedAt, StepWeight, 0) // somebody gave it a weight meanwhile
	c.Annotations[v1beta1.DrainAnnotation] = "{"
	if _, _, err := Next(c, drainedAt, ttl, nil); err == nil || !strings.Contains(err.Error(), `cluster east-a: annotation federation.kubernetes.io/drain: "{"`) {
		t.Errorf("a broken annotation: %v", err)
	}
}

// TestTheTTLBeginsWhenAllProvidersHaveTheChange: of one that is behind nobody knows when resolvers will forget.
func TestTheTTLBeginsWhenAllProvidersHaveTheChange(t *testing.T) {
	c := &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}}
	Begin(c, drainedAt)
	at := func(s int) time.Time { return drainedAt.Add(time.Duration(s) * time.Second) }
	for name, test := range map[string]struct {
		providers []Provider
		now       int
		want      Step
		wait      int
	}{
		"published long before":           {[]Provider{{Published: true, Since: at(-500)}}, 5, StepTTL, 12},
		"published after the change":      {[]Provider{{Published: true, Since: at(40)}, {Published: true, Since: at(-500)}}, 45, StepTTL, 12},
		"one is behind, for however long": {[]Provider{{Since: at(-500)}, {Published: true, Since: at(40)}}, 5000, StepPublish, 0},
		"over":                            {[]Provider{{Published: true, Since: at(40)}}, 57, StepTaint, 0},
	} {
		if step, left, err := Next(c, drainedAt.Add(time.Duration(test.now)*time.Second), 15*time.Second, test.providers); step != test.want || left != time.Duration(test.wait)*time.Second || err != nil {
			t.Errorf("%s: %s %s %v, want %s %ds", name, step, left, err, test.want, test.wait)
		}
	}
}

// TestUndrainUndoesDrain: whatever the cluster was like, and wherever the drain was interrupted.
func TestUndrainUndoesDrain(t *testing.T) {
	other := corev1.Taint{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	for _, w := range []*int32{nil, weight(0), weight(30)} {
		for _, taints := range [][]corev1.Taint{nil, {other}, {Cordon}, {other, Cordon}} {
			for steps := 1; steps <= 4; steps++ {
				c := &v1beta1.Cluster{Spec: v1beta1.ClusterSpec{DNSWeight: w, Taints: taints}}
				before := standing(c)
				drain := []func(){
					func() { Begin(c, drainedAt) }, func() { AddTaint(c, Taint) },
					func() { Begin(c, drainedAt) }, func() { Finish(c) }, // resumed in between
				}
				for _, step := range drain[:steps] {
					step()
				}
				for next := NextBack(c); next != StepDone; next = NextBack(c) {
					map[Step]func(*v1beta1.Cluster){StepUntaint: Untaint, StepReturn: End}[next](c)
				}
				if after := standing(c); after != before || len(c.Annotations) > 0 || (c.Spec.DNSWeight == nil) != (w == nil) {
					t.Errorf("after %d steps: %s %v, want %s", steps, after, c.Annotations, before)
				}
			}
		}
	}
}

func TestUndrainKeepsAWeightThatSomebodySet(t *testing.T) {
	c := &v1beta1.Cluster{}
	Begin(c, drainedAt)
	c.Spec.DNSWeight = weight(5)
	if End(c); c.DNSWeight() != 5 {
		t.Errorf("weight %d, want 5", c.DNSWeight())
	}
}
