package report

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// finished returns an isolation that missed an objective. Its reason is arbitrary user text.
func finished() *v1beta1.FailoverDrill {
	at := func(d time.Duration) *metav1.MicroTime {
		return new(metav1.NewMicroTime(time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC).Add(d)))
	}
	return &v1beta1.FailoverDrill{
		ObjectMeta: metav1.ObjectMeta{Name: "quarterly"},
		Spec:       v1beta1.FailoverDrillSpec{Method: v1beta1.DrillIsolation, Reason: "<script>alert(1)</script> | x"},
		Status: v1beta1.FailoverDrillStatus{
			Phase: v1beta1.DrillFinished, Outcome: v1beta1.DrillFailed, Reason: v1beta1.DrillObjectiveMissed, Message: "missed: outOfDNSSeconds", Clusters: []string{"east-a"},
			RequestedBy: "ann", Approved: &v1beta1.DrillDecision{By: "bob"},
			Report: &v1beta1.DrillReport{
				Marks: v1beta1.DrillMarks{Injected: at(0), Detected: at(3600 * time.Millisecond), OutOfDNS: at(9 * time.Second), Out: at(34 * time.Second), Placed: at(34400 * time.Millisecond),
					ReadyElsewhere: at(41 * time.Second), Recovering: at(30 * time.Minute), BackReady: at(30*time.Minute + time.Second), BackInDNS: at(30*time.Minute + 2*time.Second), Clean: at(33 * time.Minute),
					Failback: map[string]metav1.MicroTime{"100": *at(33 * time.Minute), "10": *at(31 * time.Minute), "50": *at(32 * time.Minute)}},
				Workloads:  v1beta1.DrillWorkloads{Objects: 2, Replicas: 20, LeastReadyPercent: 100},
				Prediction: v1beta1.DrillPrediction{Replicas: 20, Measured: 20, Records: 3},
				Earlier:    &v1beta1.DrillEarlier{Runs: 6, P75Milliseconds: map[string]int64{"detected": 3700, "outOfDNS": 4000}},
				Probes:     []v1beta1.DrillProbeResult{{Name: "web", From: "Federation", Asked: 2209, Failed: 4, LongestOutageMilliseconds: 3200, LastFailure: "status 503"}},
				Objectives: []v1beta1.DrillObjective{{Name: "outOfDNSSeconds", Limit: 6, Measured: new(int32(9))}, {Name: "detectedSeconds", Limit: 4, Measured: new(int32(4)), Met: true}},
			},
		},
	}
}

// All forms of a report say the same, and none contains markup from the reason. Acceptance test 32 of drills, with
// TestJUnitIsRead.
func TestReportsAgree(t *testing.T) {
	for name, c := range map[string]struct {
		print func(io.Writer, *v1beta1.FailoverDrill) error
		says  []string
	}{
		"text":     {reportText, []string{"Failed, ObjectiveMissed", "+3.6s", "judged lost", "+3m0s", "has 100 % of its replicas", "MISSED: asked for 6, measured 9", "Made by", "bob", "6 of the same clusters and method; detected 3.6s, in three of four within 3.7s; outOfDNS 9s, in three of four within 4s", "2209 questions, 4 failed, longest outage 3.2s: status 503"}},
		"markdown": {reportMarkdown, []string{"| +9.0s | out of DNS |", `&lt;/script> \| x`}},
		"html":     {reportHTML, []string{`class="Failed"`, "judged lost &#43;3.6s", "nothing of the drill is left &#43;33m0s", "&lt;script&gt;alert(1)", "MISSED: asked for 6, measured 9"}},
		"junit":    {reportJUnit, []string{`tests="3" failures="2"`, "Isolate of east-a", "asked for 6, measured 9"}},
	} {
		var out strings.Builder
		if err := c.print(&out, finished()); err != nil {
			t.Fatal(err)
		}
		for _, text := range c.says {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s does not say %q:\n%s", name, text, out.String())
			}
		}
		if name != "text" && strings.Contains(out.String(), "<script>alert") {
			t.Errorf("%s has somebody's markup", name)
		}
	}
	var steps []string
	for _, m := range finished().Status.Report.Marks.InOrder() {
		steps = append(steps, m.Name)
	}
	if got := strings.Join(steps, " "); got != "detected outOfDNS out placed readyElsewhere recovering backReady backInDNS failback.10 failback.50 failback.100 clean" {
		t.Errorf("shares out of order: %s", got)
	}
}

func TestJUnitIsRead(t *testing.T) {
	var out strings.Builder
	if err := reportJUnit(&out, finished()); err != nil {
		t.Fatal(err)
	}
	var suite junitSuite
	if err := xml.Unmarshal([]byte(out.String()), &suite); err != nil || suite.Failures != 2 || len(suite.Cases) != 3 || suite.Cases[2].Failure != nil {
		t.Errorf("%+v, %v", suite, err)
	}
}
