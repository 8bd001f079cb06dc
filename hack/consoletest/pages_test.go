package consoletest

import (
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// axe is axe-core, which finds what people with disabilities cannot use.
//
//go:embed testdata/axe.min.js
var axe string

// TestPages opens each page with the objects of a small fleet, light and dark: axe-core finds nothing, the policy is not
// violated, and nothing leaves the origin. Acceptance tests 6, 17 and 23 of the console, with TestHostileNames and TestPagesOfFewAndMany.
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

// TestPagesOfFewAndMany opens the pages of a federation without clusters, of one of 3 clusters, on which nothing runs and nothing has happened, and of one
// of 1,000 clusters, light and dark: axe-core finds nothing. Acceptance test 17 of the console, with TestPages, whose 8 clusters are one in each state.
func TestPagesOfFewAndMany(t *testing.T) {
	none, few, many := startServer(t), startServer(t), startServer(t)
	must(t, few.fleet.info(), few.fleet.clusters(3, nil), many.fleet.clusters(1000, nil))
	seedObjects(t, many)
	const a = "region-a%2Fa"
	for _, fleet := range []struct {
		name    string
		cells   int
		address string
		pages   []string
	}{
		{"no cluster", 0, none.console(t), []string{"#/", "#/workloads?namespace=shop", "#/failover", "#/drills", "#/events?reason=None", "#/?show=none"}},
		{"3 clusters", 3, few.console(t), []string{"#/", "#/workloads", "#/services", "#/services?kind=ingresses", "#/failover", "#/failover?zone=" + a, "#/drills", "#/events", "#/?show=a-a-00", "#/workload/deployments.apps/shop/none", "#/drill/none", "#/nowhere"}},
		{"1,000 clusters", 1000, many.console(t), []string{"#/", "#/workload/deployments.apps/shop/web", "#/service/shop/web", "#/ingress/shop/front", "#/failover?zone=" + a, "#/drills?zone=" + a, "#/?show=b-b-00"}},
	} {
		for _, dark := range []bool{false, true} {
			b := startBrowser(t, look{1440, 900, dark})
			b.open(fleet.address)
			b.wait(`document.querySelector("main h1")`)
			b.waitCells(fleet.cells)
			for _, hash := range fleet.pages {
				b.show(hash)
				b.wait(`!document.querySelector("main .loading")`)
				b.checkAccessible(fmt.Sprintf("%s of %s, dark %v", hash, fleet.name, dark))
			}
			b.show("#/")
			b.wait(`!document.querySelector("dialog[open]")`)
			b.press("/")
			b.wait(`document.getElementById("search").open`)
			b.checkAccessible("search of " + fleet.name)
			b.press("x", "y", "z") // the dialog opens at its field
			b.waitText("Nothing has that name.")
			b.checkAccessible("search of " + fleet.name + " without a result")
			b.checkClean(origin(t, fleet.address))
			b.end()
		}
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
	if took := time.UnixMilli(at).Sub(written); took > time.Second && *judgeTimes {
		t.Errorf("the cell changed %s after the Cluster", took)
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
