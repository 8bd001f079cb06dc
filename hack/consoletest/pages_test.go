package consoletest

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// axe is axe-core, which finds what people with disabilities cannot use.
//
//go:embed testdata/axe.min.js
var axe string

// TestPages opens each page with the objects of a small fleet, light and dark: axe-core finds nothing, the policy is not
// violated, and nothing leaves the origin. Acceptance tests 6, 17 and 23 of the console.
func TestPages(t *testing.T) {
	s := startServer(t)
	seedFew(t, s)
	address := s.console(t)
	for _, dark := range []bool{false, true} {
		b := startBrowser(t, look{1440, 900, dark})
		b.open(address)
		b.waitText("Problems, oldest first")
		for _, p := range shown {
			b.show(p.hash)
			b.waitText(p.text)
			b.checkAccessible(fmt.Sprintf("%s, dark %v", p.name, dark))
		}
		b.show("#/")
		b.wait(`!document.body.innerText.includes("Conditions")`) // going elsewhere closes dialogs, once the page has heard of it
		b.press("?")
		b.waitText("all its requests are yours")
		b.checkAccessible("help")
		b.checkClean(origin(t, address))
	}
}

// checkAccessible fails the test for each violation of WCAG 2.2 AA that axe-core finds.
func (b *browser) checkAccessible(page string) {
	b.t.Helper()
	var loaded bool
	if b.eval("typeof axe === 'object'", &loaded); !loaded {
		b.eval("(() => {"+axe+"\nwindow.axe = axe})()", nil)
	}
	var found []string
	b.eval(`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then((r) => r.violations.flatMap((v) => v.nodes.slice(0, 3).map((n) => v.id + " " + n.html.slice(0, 200) + " " + n.failureSummary)))`, &found)
	for _, f := range found {
		b.t.Errorf("%s: %s", page, f)
	}
}

// TestTheBudget sums up what all files weigh, compressed, as the server sends them. Acceptance test 2 of the console, with TestThousandClusters.
func TestTheBudget(t *testing.T) {
	s := startServer(t)
	b := startBrowser(t, desk)
	address := s.console(t)
	b.open(address)
	b.waitText("No cluster has joined yet.")
	var sizes []struct {
		Name string
		Size int
	}
	b.eval(`performance.getEntriesByType("resource").filter((e) => e.name.includes("/console/")).map((e) => ({Name: e.name, Size: e.encodedBodySize}))`, &sizes)
	all := 0
	for _, one := range sizes {
		all += one.Size
	}
	t.Logf("%d files, %d bytes compressed", len(sizes), all)
	if len(sizes) < 10 || all > 60_000 {
		t.Errorf("%d files of %d bytes: at most 60000 are allowed", len(sizes), all)
	}
}

// TestHostileNames has objects say what would do harm if it were taken for markup or a script. Acceptance test 6 of the console.
func TestHostileNames(t *testing.T) {
	s := startServer(t)
	payloads := []string{"<img src=x onerror=window.hurt=1>", "<script>window.hurt=1</script>", "javascript:window.hurt=1", `"><svg onload=window.hurt=1>`, "${window.hurt=1}", "{{window.hurt=1}}", "</textarea><iframe srcdoc='<script>parent.hurt=1</script>'>", "\u202eknil\u202c<a href=javascript:hurt=1>x</a>"}
	must(t, s.fleet.clusters(4, func(i int, c *v1beta1.Cluster) {
		lose(c, v1beta1.PhaseFailedOver, payloads[i])
		c.Status.Region, c.Status.Zones, c.Status.KubernetesVersion = payloads[i+1], []string{payloads[i+2]}, payloads[i+3]
		c.Status.Conditions[0].Message = payloads[i+4]
	}))
	must(t, s.fleet.namespace("shop"), s.fleet.deployment("shop", "web", map[string]int64{"a-a-00": 3}, payloads[0]))
	for _, p := range payloads {
		must(t, s.fleet.event("default", corev1.ObjectReference{Kind: "Cluster", Name: p, APIVersion: "v1"}, strings.Map(letters, p), p))
	}
	must(t, s.fleet.hostileDrill(payloads))
	address := s.console(t)
	b := startBrowser(t, desk)
	b.open(address)
	b.waitText(payloads[0])
	b.show("#/drill/hostile")
	b.wait(fmt.Sprintf(`document.querySelector(".report")?.innerText.includes(%s) && document.querySelectorAll("svg[role=img]").length === 2`, quote(payloads[5])))
	for _, hash := range []string{"#/?show=a-a-00", "#/workload/deployments.apps/shop/web", "#/workload/javascript:hurt=1/x/y", "#/events", "#/events?cluster=" + payloads[1], "#/failover?cluster=" + payloads[0], "#/" + payloads[0], "#/workloads?namespace=" + payloads[3]} {
		b.show(hash)
		b.wait(`!document.querySelector("main .loading")`)
	}
	var hurt bool
	var links []string
	b.eval("'hurt' in window", &hurt)
	b.show("#/events")
	b.waitText(payloads[1])
	b.eval(`[...document.links].map((l) => l.protocol).filter((p) => !p.startsWith("http"))`, &links)
	if hurt || len(links) > 0 {
		t.Errorf("a payload ran: %v; links that are none: %q", hurt, links)
	}
	b.checkClean(origin(t, address))
}

func letters(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

// TestAClusterIsLost checks that a cell changes within a second after the Cluster does. Acceptance test 5 of the console.
func TestAClusterIsLost(t *testing.T) {
	s, b := openOverview(t, 3)
	b.wait(`document.querySelector(".live").innerText.includes("live")`)
	lost := member(0, 3)
	lose(lost, v1beta1.PhaseFailedOver, "not ready for longer than the grace period")
	b.eval(fmt.Sprintf(`void (window.changed = new Promise((done) => { const look = () => document.querySelector('[data-name="%s"]').getAttribute("aria-label").includes("failed over") ? done(Date.now()) : requestAnimationFrame(look); look(); }))`, lost.Name), nil)
	must(t, s.fleet.put(lost))
	written := time.Now()
	var at int64
	b.eval("changed", &at)
	if took := time.UnixMilli(at).Sub(written); took > time.Second {
		t.Errorf("the cell changed %s after the Cluster", took)
	}
}

// TestThousandClusters loads the overview of 1,000 clusters, and watches it while some 50 of them change a second. It limits
// what the page makes and touches, and logs what that costs: times depend on the other work of the machine. Acceptance tests 2, 3 and 17 of the console.
func TestThousandClusters(t *testing.T) {
	s := startServer(t)
	must(t, s.fleet.clusters(1000, func(i int, c *v1beta1.Cluster) {
		if i%90 == 7 {
			lose(c, v1beta1.PhaseFailedOver, "its replicas are placed elsewhere")
		}
	}))
	b := startBrowser(t, desk)
	b.open(s.console(t))
	b.waitCells(1000)
	var paint, usable float64
	b.eval(`performance.getEntriesByName("first-contentful-paint")[0].startTime`, &paint)
	b.eval(`performance.getEntriesByName("clusters-shown")[0].startTime`, &usable)
	var nodes int
	b.eval(`document.querySelectorAll("*").length`, &nodes)
	t.Logf("first paint after %.0f ms, all clusters after %.0f ms, of which the page computed %.0f ms; %d elements", paint, usable, b.busy(), nodes)
	if nodes > 5000 {
		t.Errorf("1,000 clusters are shown by %d elements: at most 5000 are allowed", nodes)
	}
	b.checkAccessible("overview of 1,000 clusters")

	b.eval(`void (window.frames60 = [], (function count(at) { frames60.push(at); requestAnimationFrame(count) })(performance.now()))`, nil)
	b.eval(`void (window.touched = 0, new MutationObserver((records) => { for (const r of records) touched += 1 + r.addedNodes.length }).observe(document, {subtree: true, childList: true, attributes: true, characterData: true}))`, nil)
	before, changes := b.busy(), 0
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); changes++ {
		c := member(changes%1000, 1000)
		if changes%2 == 0 {
			lose(c, v1beta1.PhaseGracePeriod, "not ready")
		}
		must(t, s.fleet.put(c))
		time.Sleep(15 * time.Millisecond)
	}
	var frames, seconds float64
	b.eval("frames60.length", &frames)
	b.eval("(frames60.at(-1) - frames60[0]) / 1000", &seconds)
	var touched float64
	b.eval("touched", &touched)
	touched /= float64(changes)
	t.Logf("%d changes, %.1f frames a second; the page computes %.1f ms for each change and touches %.1f nodes", changes, frames/seconds, (b.busy()-before)/float64(changes), touched)
	if touched > 20 {
		t.Errorf("the page touches %.1f nodes for each change: at most 20 are allowed", touched)
	}
}

// TestWithoutConsole checks that --console=false leaves nothing of it, and that the plugin says so.
func TestWithoutConsole(t *testing.T) {
	s := startServer(t, "--console=false")
	client := s.client(t)
	answer, err := client.Get(s.admin.Host + "/console/")
	must(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("/console/ answers %s", answer.Status)
	}
	if said := s.plugin("console", "--no-browser"); !strings.Contains(said, "serves no console") {
		t.Errorf("the plugin says: %s", said)
	}
}
