package consoletest

import (
	"fmt"
	"testing"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestThePageStaysSmall has clusters be lost and return again and again, and has the page ask again and again: of neither anything stays in the page, which
// is open for days. What is left in the document makes all work of the browser slower.
func TestThePageStaysSmall(t *testing.T) {
	if *firefox {
		t.Skip("only Chromium can say this")
	}
	const clusters, times, questions = 20, 8, 500
	s, b := openOverview(t, clusters)
	b.lostAndBack(s.fleet, clusters)
	before := b.kept("Nodes")
	for range times {
		b.lostAndBack(s.fleet, clusters)
	}
	if after := b.kept("Nodes"); after > before+clusters {
		t.Errorf("the page has grown from %.0f to %.0f nodes: %d times %d clusters were lost and have returned", before, after, times, clusters-1)
	}
	before = b.kept("JSEventListeners")
	b.eval(fmt.Sprintf(`import("./store.js").then(({Answer}) => new Promise((done) => {
		window.asking = new AbortController();
		let asked = 0;
		new Answer(async () => ++asked, () => asked >= %d && done(), 0).follow(asking.signal);
	}))`, questions), nil)
	after := b.kept("JSEventListeners")
	b.eval("asking.abort()", nil)
	if after > before+questions/10 {
		t.Errorf("the page has grown from %.0f to %.0f listeners by %d questions", before, after, questions)
	}
}

// lostAndBack has all clusters be lost and all but one return, so that the list of problems stays. It waits until the page shows either.
func (b *browser) lostAndBack(f *fleet, clusters int) {
	b.t.Helper()
	for _, lost := range []int{clusters, 1} {
		for i := range clusters {
			c := member(i, clusters)
			if i < lost {
				lose(c, v1beta1.PhaseGracePeriod, "not ready")
			}
			must(b.t, f.change(c))
		}
		b.wait(fmt.Sprintf(`document.querySelectorAll(".problems li").length === %d`, lost))
	}
}
