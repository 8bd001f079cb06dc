package v1beta1

import (
	"math/rand"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDrillMarks_InOrder: whatever marks have come, and whenever: each is there once, by time, and counted from the fault or the way back.
func TestDrillMarks_InOrder(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	start := time.Unix(1_700_000_000, 0)
	for range 300 {
		m := &DrillMarks{Failback: map[string]metav1.MicroTime{}}
		marks := 0
		some := func() *metav1.MicroTime {
			if random.Intn(3) == 0 {
				return nil
			}
			at := metav1.NewMicroTime(start.Add(time.Duration(random.Intn(60)) * time.Second))
			return &at
		}
		m.Injected, m.Recovering = some(), some()
		for _, mark := range []**metav1.MicroTime{&m.Detected, &m.OutOfDNS, &m.LastUse, &m.Out, &m.Placed, &m.ReadyElsewhere} {
			if *mark = some(); *mark != nil && m.Injected != nil {
				marks++
			}
		}
		if m.Injected != nil && m.Recovering != nil {
			marks++
		}
		for _, mark := range []**metav1.MicroTime{&m.BackReady, &m.BackInDNS, &m.Clean} {
			if *mark = some(); *mark != nil && m.Recovering != nil {
				marks++
			}
		}
		for _, percent := range []string{"10", "50", "100"} {
			if at := some(); at != nil {
				if m.Failback[percent] = *at; m.Recovering != nil {
					marks++
				}
			}
		}
		all, names := m.InOrder(), map[string]bool{}
		for _, mark := range all {
			from := m.Injected
			if mark.Back {
				from = m.Recovering
			}
			if names[mark.Name] || mark.What == "" || !mark.At.Equal(from.Add(mark.After)) {
				t.Fatalf("%+v of %+v", mark, m)
			}
			names[mark.Name] = true
		}
		if len(all) != marks || !slices.IsSortedFunc(all, func(a, b DrillMark) int { return a.At.Compare(b.At) }) {
			t.Fatalf("%d marks have come, and these are in order: %+v", marks, all)
		}
		after := m.Elapsed()
		if delete(names, "recovering"); len(after) != len(names) {
			t.Fatalf("%v has not all of %v", after, names)
		}
	}
}

// Shares that a cluster gets back at the same time come in the order of their percentages, not of their letters.
func TestDrillMarks_SharesAtOnce(t *testing.T) {
	at := metav1.NewMicroTime(time.Unix(1_700_000_000, 0))
	m := &DrillMarks{Injected: &at, Recovering: &at, Failback: map[string]metav1.MicroTime{"100": at, "50": at, "5": at}}
	var names []string
	for _, mark := range m.InOrder() {
		if mark.Name != "recovering" {
			names = append(names, mark.Name)
		}
	}
	if want := []string{"failback.5", "failback.50", "failback.100"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}
