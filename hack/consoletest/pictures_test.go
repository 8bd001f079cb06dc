package consoletest

import (
	"flag"
	"path/filepath"
	"testing"
	"time"
)

var pictures = flag.String("pictures", "", "folder for pictures of all pages; without it none are made")

// shown are the pages, by the name of their picture, each with a text that is there when it is whole.
var shown = []struct{ name, hash, text string }{
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

// TestPictures takes pictures of all pages for docs/console.md, and of the same on a phone and in the dark to look at.
// Those that the document does not show are not kept: .gitignore.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("no folder was named with -pictures")
	}
	s := startServer(t)
	seedFew(t, s)
	address := s.console(t)
	for suffix, l := range map[string]look{"": desk, "-phone": {390, 844, false}, "-dark": {1440, 900, true}} {
		b := startBrowser(t, l)
		b.open(address)
		b.waitText("Problems, oldest first")
		for _, p := range shown {
			b.show(p.hash)
			b.waitText(p.text)
			time.Sleep(500 * time.Millisecond)
			b.picture(filepath.Join(*pictures, p.name+suffix+".png"))
		}
		b.checkClean(origin(t, address))
	}
}
