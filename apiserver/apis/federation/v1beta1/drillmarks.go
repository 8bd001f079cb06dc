package v1beta1

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DrillMark is a mark of a drill that has come.
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type DrillMark struct {
	// Name is that of the field in DrillMarks, in metrics and in what is compared with earlier drills; of shares of replicas it is "failback", a point and the percentage.
	Name string
	// What it is, for people.
	What string
	// At is when it came.
	At time.Time
	// After is how long after the fault that was or, where Back is set, after the way back began.
	After time.Duration
	Back  bool
}

// InOrder returns the marks after the fault, in order of time. It is the one list of them: texts, the page, metrics and
// comparisons use it.
func (m *DrillMarks) InOrder() (all []DrillMark) {
	note := func(name, what string, mark, from *metav1.MicroTime) {
		if from != nil && mark != nil {
			all = append(all, DrillMark{Name: name, What: what, At: mark.Time, After: mark.Sub(from.Time), Back: from == m.Recovering})
		}
	}
	note("detected", "judged lost", m.Detected, m.Injected)
	note("outOfDNS", "out of DNS", m.OutOfDNS, m.Injected)
	note("lastUse", "no resolver keeps the addresses", m.LastUse, m.Injected)
	note("out", "failed over", m.Out, m.Injected)
	note("placed", "replicas placed elsewhere", m.Placed, m.Injected)
	note("readyElsewhere", "replicas ready elsewhere", m.ReadyElsewhere, m.Injected)
	note("recovering", "the way back begins", m.Recovering, m.Injected)
	note("backReady", "ready again", m.BackReady, m.Recovering)
	note("backInDNS", "back in DNS", m.BackInDNS, m.Recovering)
	for percent, at := range m.Failback {
		note("failback."+percent, "has "+percent+" % of its replicas again", &at, m.Recovering)
	}
	note("clean", "nothing of the drill is left", m.Clean, m.Recovering)
	slices.SortStableFunc(all, func(a, b DrillMark) int {
		if c := a.At.Compare(b.At); c != 0 || a.Name[0] != 'f' || b.Name[0] != 'f' {
			return c
		}
		return percentOf(a.Name) - percentOf(b.Name)
	})
	return all
}

// percentOf returns the percentage in the name of a mark.
func percentOf(name string) int {
	n, _ := strconv.Atoi(name[len("failback."):])
	return n
}

// Elapsed returns how long after the fault, or after the way back began, each mark came, by name. It leaves out missing
// ones, and recovering, which is the hold in the spec.
func (m *DrillMarks) Elapsed() map[string]time.Duration {
	after := map[string]time.Duration{}
	for _, mark := range m.InOrder() {
		if mark.Name != "recovering" {
			after[mark.Name] = mark.After
		}
	}
	return after
}
