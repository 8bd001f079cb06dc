package consoletest

import (
	"flag"
	"path/filepath"
	"testing"
	"time"
)

var pictures = flag.String("pictures", "", "folder for pictures of all pages; without it none are made")

// pictured is a page: the name of its picture, its address, and a text that is there when it is whole.
type pictured struct{ name, hash, text string }

// shown are the pages of a federation on which things run.
var shown = []pictured{
	{"overview", "#/", "Problems, oldest first"},
	{"workloads", "#/workloads?namespace=*", "a-name-that-is"},
	{"workload", "#/workload/deployments.apps/shop/web", "Decisions"},
	{"services", "#/services?namespace=*", "LoadBalancer"},
	{"service", "#/service/shop/web", "Where it is"},
	{"ingresses", "#/services?kind=ingresses&namespace=*", "front"},
	{"ingress", "#/ingress/shop/front", "Where requests go"},
	{"failover", "#/failover?zone=region-a%2Fa", "would move"},
	{"drills", "#/drills", "weekly-47"},
	{"drill", "#/drill/weekly-47", "out of DNS"},
	{"events", "#/events", "ClusterFailedOver"},
	{"cluster", "#/?show=b-b-00", "Conditions"},
}

// bare are the pages of a federation that no cluster has joined yet.
var bare = []pictured{
	{"none-overview", "#/", "No cluster has joined yet."},
	{"none-workloads", "#/workloads", "There is no Deployment"},
	{"none-workload", "#/workload/deployments.apps/shop/web", "not found"},
	{"none-services", "#/services", "There is no Service"},
	{"none-ingresses", "#/services?kind=ingresses", "There is no Ingress"},
	{"none-failover", "#/failover", "No cluster has joined yet."},
	{"none-drills", "#/drills", "There has been no drill yet."},
	{"none-drill", "#/drill/none", "There is no such drill."},
	{"none-events", "#/events?cluster=none", "No event matches."},
	{"none-cluster", "#/?show=none", "no such cluster"},
	{"none-page", "#/nowhere", "no such page"},
}

// looks are the ways in which each page is pictured, by the end of the name.
var looks = map[string]look{"": desk, "-phone": {390, 844, false}, "-dark": {1440, 900, true}}

// TestPictures takes pictures of all pages for docs/console.md, and of the same on a phone, in the dark, and of a federation with nothing in it to look
// at. Those that the document does not show are not kept: .gitignore.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("no folder was named with -pictures")
	}
	s, none := startServer(t), startServer(t)
	seedFew(t, s)
	full, empty := s.console(t), none.console(t)
	for suffix, l := range looks {
		b := startBrowser(t, l)
		b.pictures(full, shown, suffix)
		b.pictures(empty, bare, suffix)
		b.press("/")
		b.wait(`document.getElementById("search").open`)
		b.press("x", "y", "z")
		b.waitText("Nothing has that name.")
		b.picture(filepath.Join(*pictures, "none-search"+suffix+".png"))
		b.end()
	}
}

// pictures takes pictures of the pages of a federation, whose console is at an address.
func (b *browser) pictures(address string, pages []pictured, suffix string) {
	b.t.Helper()
	b.open(address)
	b.waitText(pages[0].text)
	for _, p := range pages {
		b.show(p.hash)
		b.waitText(p.text)
		time.Sleep(500 * time.Millisecond) // a chart is drawn once its place is known
		b.picture(filepath.Join(*pictures, p.name+suffix+".png"))
	}
	var violations []string
	b.eval("violations", &violations)
	if len(violations) > 0 {
		b.t.Errorf("violations of the policy: %q", violations)
	}
}
