package consoletest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

// drilled makes a drill that has succeeded, with a report as long as those of large fleets are.
func (f *fleet) drilled(name string, ended time.Time) error {
	d := &v1beta1.FailoverDrill{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverDrill"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.FailoverDrillSpec{Scope: v1beta1.FailoverDrillScope{Zones: []string{"region-a/a"}}, Method: v1beta1.DrillIsolation, Reason: "as each week, ticket 4711", HoldSeconds: new(int32(1800)),
			Objectives: v1beta1.FailoverDrillObjectives{OutOfDNSSeconds: new(int32(6)), DetectedSeconds: new(int32(4)), ReadyElsewhereSeconds: new(int32(90)), MinReadyPercent: new(int32(99)), MaxFailedPerMille: new(int32(5))}},
	}
	for _, p := range []v1beta1.DrillProbe{{Name: "web", Type: v1beta1.ProbeHTTP, Path: "/healthz", Guard: true}, {Name: "login", Type: v1beta1.ProbeHTTPS, Port: 8443}, {Name: "database", Type: v1beta1.ProbeTCP, Port: 5432}, {Name: "name", Type: v1beta1.ProbeDNS}} {
		p.Service = &v1beta1.DrillProbeService{Namespace: "shop", Name: p.Name}
		d.Spec.Probes = append(d.Spec.Probes, p)
	}
	return f.withStatus(f.admin, unstructuredOf(d), v1beta1.FailoverDrillStatus{
		Phase: v1beta1.DrillFinished, PhaseSince: new(metav1.NewMicroTime(ended)), Outcome: v1beta1.DrillSucceeded, Reason: v1beta1.DrillCompleted, Message: "held in full, and undone", Clusters: []string{"a-a-00", "a-a-01"}, RequestedBy: "ann", Report: longReport(ended.Add(-1990 * time.Second)),
	}, v1beta1.FailoverDrillsResource)
}

// longReport is what was measured of a drill whose fault was at a time.
func longReport(fault time.Time) *v1beta1.DrillReport {
	at := func(ms int) *metav1.MicroTime {
		return new(metav1.NewMicroTime(fault.Add(time.Duration(ms) * time.Millisecond)))
	}
	r := &v1beta1.DrillReport{
		Marks: v1beta1.DrillMarks{Injected: at(0), Detected: at(3600), OutOfDNS: at(3800), LastUse: at(20_900), Out: at(34_100), Placed: at(34_400), ReadyElsewhere: at(41_000), Recovering: at(1_800_000), BackReady: at(1_801_100), BackInDNS: at(1_801_400), Clean: at(1_988_000),
			Failback: map[string]metav1.MicroTime{"10": *at(1_861_000), "50": *at(1_922_000), "100": *at(1_983_000)}},
		Workloads:  v1beta1.DrillWorkloads{Objects: 212, Replicas: 1310, Elsewhere: 11_090, LeastReadyPercent: 99, MostNotReady: 12, MostAt: at(600_000)},
		Prediction: v1beta1.DrillPrediction{Replicas: 1310, Measured: 1310, Records: 96},
		Probes:     []v1beta1.DrillProbeResult{{Name: "web", From: "Federation", Asked: 1988, Failed: 4, LongestOutageMilliseconds: 3200, LastFailure: "status 503"}, {Name: "login", From: "Federation", Asked: 1988}, {Name: "database", From: "Federation", Asked: 1987, Unknown: 1}, {Name: "name", From: "Federation", Asked: 1988}},
		Earlier:    &v1beta1.DrillEarlier{Runs: 6, P75Milliseconds: map[string]int64{"detected": 3700, "outOfDNS": 4000, "lastUse": 21_000, "out": 34_200, "placed": 34_700, "readyElsewhere": 44_000, "backReady": 1200, "backInDNS": 1500, "failback.10": 61_000, "failback.50": 122_000, "failback.100": 183_000, "clean": 188_000}},
	}
	for i, name := range []string{"outOfDNSSeconds", "detectedSeconds", "readyElsewhereSeconds", "minReadyPercent", "maxFailedPerMille"} {
		r.Objectives = append(r.Objectives, v1beta1.DrillObjective{Name: name, Limit: []int32{6, 4, 90, 99, 5}[i], Measured: new([]int32{4, 4, 41, 99, 3}[i]), Met: true})
	}
	for i := range 50 {
		name := fmt.Sprintf("service-%02d.shop.prod.svc.a.region-a.example.com.", i)
		r.Prediction.Followed = append(r.Prediction.Followed, v1beta1.RecordChange{Name: name, Type: "A", Before: []string{fmt.Sprintf("192.0.2.%d", i+1)}})
		r.Prediction.Moves = append(r.Prediction.Moves, v1beta1.ReplicaMove{Kind: "Deployment", Namespace: "shop", Name: fmt.Sprintf("service-%02d", i), Clusters: []v1beta1.ReplicaChange{{Cluster: "a-a-00", Before: 12}, {Cluster: "b-a-00", Before: 4, After: 16}}})
		if i < 15 {
			r.Prediction.Differences = append(r.Prediction.Differences, fmt.Sprintf("Deployment shop/service-%02d: b-a-00 has 15, 16 were predicted; b-a-01 has 5, 4 were predicted", i))
		}
	}
	for _, s := range [][5]int64{
		{0, 12_400, 1310, 50, 0}, {3600, 11_090, 1310, 50, 3}, {4600, 11_090, 1310, 0, 4}, {34_400, 11_090, 0, 0, 4}, {35_400, 11_300, 0, 0, 4}, {36_600, 11_650, 0, 0, 4}, {38_400, 12_100, 0, 0, 4}, {40_300, 12_390, 0, 0, 4}, {41_000, 12_400, 0, 0, 4},
		{600_000, 12_388, 0, 0, 4}, {610_000, 12_400, 0, 0, 4}, {1_801_400, 12_400, 0, 50, 4}, {1_861_000, 12_400, 131, 50, 4}, {1_922_000, 12_397, 655, 50, 4}, {1_932_000, 12_400, 655, 50, 4}, {1_983_000, 12_400, 1310, 50, 4},
	} {
		r.Samples = append(r.Samples, v1beta1.DrillSample{AfterMilliseconds: s[0], Ready: s[1], InScope: s[2], InDNS: int32(s[3]), Failed: s[4]})
	}
	return r
}

// getDrill reads a drill.
func (s *server) getDrill(t *testing.T, name string) *v1beta1.FailoverDrill {
	t.Helper()
	u, err := s.fleet.admin.Resource(v1beta1.FailoverDrillsResource).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	d := &v1beta1.FailoverDrill{}
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d))
	return d
}

// setDrill writes a part of a drill's status, as the federation does, which does not run here.
func (s *server) setDrill(t *testing.T, name string, status v1beta1.FailoverDrillStatus) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	must(t, err)
	_, err = s.fleet.controllers.Resource(v1beta1.FailoverDrillsResource).Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	must(t, err)
}

// until waits until something is so.
func (s *server) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !so(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// drillText is what a new drill is to do, and who asked for it.
func (s *server) drillText(t *testing.T, name string) string {
	t.Helper()
	s.until(t, name+" exists", func() bool {
		_, err := s.fleet.admin.Resource(v1beta1.FailoverDrillsResource).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil
	})
	d := s.getDrill(t, name)
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	must(t, encoder.Encode([]any{d.Annotations, d.Labels, d.Spec, d.Status.RequestedBy}))
	return plain(strings.ReplaceAll(text.String(), name, "NAME"))
}

var times = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// plain returns a text without the times in it.
func plain(text string) string { return times.ReplaceAllString(text, "TIME") }

// shownMarks is what the page of a drill says of its marks.
const shownMarks = `[...document.querySelectorAll('[aria-label="Marks"] tbody tr')].map((r) => r.cells[2].innerText + " " + r.cells[3].innerText)`

// marksOf is what it is to say.
func marksOf(m *v1beta1.DrillMarks) []string {
	all := []string{m.Injected.Local().Format("15:04:05") + " 0 s"}
	for _, mark := range m.InOrder() {
		sign := ""
		if mark.Back {
			sign = "+ "
		}
		all = append(all, mark.At.Local().Format("15:04:05")+" "+sign+inWords(mark.After))
	}
	return all
}

// inWords is a time span as the console writes it.
func inWords(d time.Duration) string {
	switch s := int64(d.Round(time.Second).Seconds()); {
	case d < time.Minute && d%time.Second != 0:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", s)
	case s%60 == 0:
		return fmt.Sprintf("%d min", s/60)
	default:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
}

// TestADrillFromThePageAlone begins a drill and follows it to its end, and aborts another one, without a terminal. The marks on the page
// are those of the object, also of what happened while nobody looked. The test plays the federation, which does not run. Acceptance
// test 13 of the console.
func TestADrillFromThePageAlone(t *testing.T) {
	s, b := openOverview(t, 4)
	b.show("#/drills?zone=region-a%2Fa&method=isolate")
	b.waitText("Begin a drill")
	b.eval(`(() => {const f = document.querySelector("main form"); f.elements.name.value = "first"; f.elements.reason.value = "to see it"; f.requestSubmit()})()`, nil)
	b.waitText("To begin, type region-a/a")
	b.wait(`document.activeElement.id === "typed"`) // the dialog opens at it
	b.press(append(strings.Split("region-a/a", ""), "Enter")...)
	b.wait(`!document.getElementById("act").open`)
	s.drillText(t, "first") // waits for it
	d := s.getDrill(t, "first")
	if d.Spec.Method != v1beta1.DrillIsolation || !slices.Equal(d.Spec.Scope.Zones, []string{"region-a/a"}) || d.Spec.Hold() != 600 || d.Spec.Reason != "to see it" {
		t.Errorf("the page made %+v", d.Spec)
	}

	b.show("#/drill/first")
	report := longReport(time.Now().Add(-time.Minute).Truncate(time.Millisecond))
	early, marks := *report, report.Marks
	early.Marks = v1beta1.DrillMarks{Injected: marks.Injected, Detected: marks.Detected}
	early.Samples, early.Objectives = report.Samples[:3], nil
	s.setDrill(t, "first", v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillHolding, PhaseSince: marks.Injected, Clusters: []string{"a-a-00"}, Report: &early})
	b.wait(`document.querySelector("main [role=status]")?.innerText.includes("Holding")`)
	b.waitText("Isolate of a-a-00, Holding") // the band
	check := func(m *v1beta1.DrillMarks) {
		t.Helper()
		want := marksOf(m)
		b.wait(fmt.Sprintf("%s.length === %d", shownMarks, len(want)))
		var got []string
		if b.eval(shownMarks, &got); !slices.Equal(got, want) {
			t.Errorf("the page has\n%q, want\n%q", got, want)
		}
	}
	check(&early.Marks)
	b.open("about:blank") // the tab is closed
	report.Objectives[0].Met, report.Objectives[0].Measured = false, new(int32(7))
	s.setDrill(t, "first", v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillFinished, Outcome: v1beta1.DrillFailed, Reason: v1beta1.DrillObjectiveMissed, Message: "missed: outOfDNSSeconds", Report: report})
	b.open(s.address)
	b.waitCells(4)
	b.show("#/drill/first")
	b.waitText("missed: outOfDNSSeconds")
	check(&marks)

	second := d.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Name: "second"}
	second.TypeMeta = metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverDrill"}
	must(t, s.fleet.withStatus(s.fleet.admin, unstructuredOf(second), v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillHolding, PhaseSince: marks.Injected, Clusters: []string{"a-a-00"}, Report: &early}, v1beta1.FailoverDrillsResource))
	b.show("#/drill/second")
	b.wait(`[...document.querySelectorAll("main .title button")].some((e) => e.innerText === "Abort")`)
	b.eval(`[...document.querySelectorAll("main .title button")].find((e) => e.innerText === "Abort").click()`, nil)
	s.until(t, "somebody has aborted it", func() bool { a := s.getDrill(t, "second").Status.Abort; return a != nil && a.By != "" })
	s.setDrill(t, "second", v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillFinished, Outcome: v1beta1.DrillInterrupted, Reason: v1beta1.DrillOperator, Message: "aborted"})
	b.wait(`document.querySelector("main [role=status]")?.innerText.includes("Interrupted")`)
	b.checkClean(origin(t, s.address))
}

// TestTheReportPrints prints a report as long as those of large fleets are, from a desk and from a phone in the dark: on two sheets of A4,
// with its charts, and nothing that only a screen can use. Acceptance test 20 of the console.
func TestTheReportPrints(t *testing.T) {
	s := startServer(t)
	seedFew(t, s)
	address := s.console(t)
	for name, l := range map[string]look{"desk": desk, "phone": {390, 844, true}} {
		b := startBrowser(t, l)
		b.open(address)
		b.waitText("Problems, oldest first")
		b.show("#/drill/weekly-47")
		b.wait(`document.querySelectorAll("svg[role=img]").length === 4`)
		pdf := b.printed()
		if *pictures != "" {
			must(t, os.WriteFile(filepath.Join(*pictures, "report-"+name+".pdf"), pdf, 0o644))
		}
		sheets := len(regexp.MustCompile(`/Type\s*/Page\b`).FindAll(pdf, -1))
		if a4 := bytes.Count(pdf, []byte("/MediaBox [0 0 594.95996 841.91998]")); sheets == 0 || sheets > 2 || a4 != sheets {
			t.Errorf("%s: %d sheets, of which %d are A4: want two at most", name, sheets, a4)
		}
		must(t, b.chromium().onMedium("print"))
		var left []string
		b.eval(`["header", "button", "form", ".numbers", ".note"].filter((s) => [...document.querySelectorAll(s)].some((e) => e.checkVisibility()))`, &left)
		if len(left) > 0 {
			t.Errorf("%s: on paper there are %q", name, left)
		}
		var ground, ink string
		b.eval(`getComputedStyle(document.body).backgroundColor`, &ground)
		b.eval(`getComputedStyle(document.querySelector(".curve")).stroke`, &ink)
		if ground != "rgb(255, 255, 255)" || ink != "rgb(36, 80, 143)" {
			t.Errorf("%s: it prints on %s with %s", name, ground, ink)
		}
	}
}

// TestChartsAreFunctions checks the pure functions of charts, in the browser that runs them.
func TestChartsAreFunctions(t *testing.T) {
	s := startServer(t)
	b := startBrowser(t, desk)
	b.open(s.console(t))
	b.waitText("No cluster has joined yet.")
	for expression, want := range map[string]string{
		`apart([10, 11, 90], 20, 0, 100)`:               `[10,30,90]`,
		`apart([95, 96, 97], 20, 0, 100)`:               `[60,80,100]`,
		`apart([], 20, 0, 100)`:                         `[]`,
		`range([5, 5])`:                                 `[0,5]`,
		`range([0])`:                                    `[0,1]`,
		`range([90, 100])`:                              `[80,100]`,
		`range([10, 100])`:                              `[0,100]`,
		`described([[0, 30], [3600, 20], [41000, 30]])`: `"30 at the beginning, 30 at the end; the lowest is 20 after 3.6 s, the highest 30 after 0 s"`,
		`described([[0, 7], [100, 7]])`:                 `"7 all the time"`,
		`!timeScale({width: 720, busy: 50, turn: 100, end: 200}).cut`:                                                                                        `true`,
		`Boolean(timeScale({width: 720, busy: 50e3, turn: 1800e3, end: 1990e3}).cut)`:                                                                        `true`,
		`((s) => [s.x(0), s.x(1990e3), s.x(-1), s.x(1e9)])(timeScale({width: 720, busy: 50e3, turn: 1800e3, end: 1990e3}))`:                                  `[46,708,46,708]`,
		`((s) => [...Array(1990).keys()].every((i) => s.x(i * 1000) < s.x((i + 1) * 1000)))(timeScale({width: 360, busy: 50e3, turn: 1800e3, end: 1990e3}))`: `true`,
		`timeScale({width: 720, busy: 40e3, turn: undefined, end: 41e3}).ticks.map((t) => t.word)`:                                                           `["0 s","10 s","20 s","30 s","40 s"]`,
		`timeScale({width: 360, busy: 15e3, turn: undefined, end: 1000}).x(1000)`:                                                                            `348`,
	} {
		var got json.RawMessage
		b.eval(`import("/console/views/chart.js").then(({apart, range, described, timeScale}) => `+expression+`)`, &got)
		if string(got) != want {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
}

// TestTheDrillOnAPhone checks that the page of a drill is not wider than a phone, and that all that it shows by colour or place it also says.
func TestTheDrillOnAPhone(t *testing.T) {
	s := startServer(t)
	seedFew(t, s)
	for _, dark := range []bool{false, true} {
		b := startBrowser(t, look{390, 844, dark})
		b.open(s.console(t))
		b.waitText("Problems, oldest first")
		b.show("#/drill/weekly-47")
		b.wait(`document.querySelectorAll("svg[role=img]").length === 4`)
		var wide int
		if b.eval("document.documentElement.scrollWidth", &wide); wide > 390 {
			t.Errorf("the page is %d px wide on 390 px", wide)
		}
		b.eval(`document.querySelectorAll("main details").forEach((d) => (d.open = true))`, nil)
		b.checkAccessible(fmt.Sprintf("drill on a phone, dark %v", dark))
		var rows int
		if b.eval(`document.querySelectorAll('[aria-label="Samples"] tbody tr').length`, &rows); rows != 16 {
			t.Errorf("the charts as a table have %d rows, want 16", rows)
		}
	}
}
