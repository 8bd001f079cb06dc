package consoletest

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"
)

var (
	site         = flag.String("site", "", "folder of the site of docs, which make site builds; without it the site is not looked at")
	sitePictures = flag.String("site-pictures", "", "folder for pictures of the site; without it none are made")
)

// TestSite looks at the site of docs as its readers do: by day and night, on a desk and on a phone.
func TestSite(t *testing.T) {
	if *site == "" {
		t.Skip("no folder was named with -site")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(*site)))
	t.Cleanup(server.Close)
	for name, l := range map[string]look{"desk": desk, "desk-dark": {1440, 900, true}, "phone": {390, 844, false}, "phone-dark": {390, 844, true}} {
		t.Run(name, func(t *testing.T) {
			b := startBrowser(t, l)
			for page, text := range map[string]string{"": "One API for many Kubernetes clusters", "first-hour": "Clean up", "drills": "Checks before a drill", "performance": "bare client", "comparison": "Which one for what", "adr/": "What was decided"} {
				b.open(server.URL + "/" + page + map[bool]string{true: ".html"}[page != "" && page != "adr/"])
				b.waitText(text)
				b.wait(fmt.Sprintf("document.documentElement.classList.contains('dark') == %t", l.dark))
				b.wait("document.documentElement.scrollWidth <= innerWidth") // what is wide scrolls by itself
				b.shot(name + "-" + map[bool]string{true: "home", false: filepath.Base(page)}[page == ""])
			}
			b.searchSite("failover drill", "drills.html")
			b.shot(name + "-found")
			b.checkClean(server.URL)
			b.notes.mu.Lock()
			defer b.notes.mu.Unlock()
			if len(b.notes.errors) > 0 {
				t.Errorf("errors on the console: %q", b.notes.errors)
			}
		})
	}
}

// searchSite searches, and follows the first thing that is found.
func (b *browser) searchSite(words, leadsTo string) {
	b.t.Helper()
	b.eval("document.querySelector('#local-search button').click()", nil)
	b.wait("document.activeElement?.matches('.VPLocalSearchBox input')")
	for _, letter := range words {
		b.press(string(letter))
	}
	b.wait("document.querySelectorAll('.VPLocalSearchBox .result').length > 3")
	b.shot(filepath.Base(b.t.Name()) + "-search")
	b.press("Enter")
	b.wait(fmt.Sprintf("location.pathname.endsWith(%s)", quote(leadsTo)))
}

// shot takes a picture, if somebody wants some.
func (b *browser) shot(name string) {
	b.t.Helper()
	if *sitePictures == "" {
		return
	}
	time.Sleep(300 * time.Millisecond) // fades end
	b.picture(filepath.Join(*sitePictures, name+".png"))
}
