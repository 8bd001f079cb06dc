package consoletest

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is one tab of a browser of its own.
type browser struct {
	t *testing.T
	driver
	notes *notes
}

// driver is what tests ask of a browser, whichever it is: Chromium, or Firefox with -firefox.
type driver interface {
	navigate(address string) error
	// evaluate returns the text that an expression is a promise of.
	evaluate(expression string) (text string, err error)
	// pressKey presses a key: a character, or Tab, Enter, Escape, Right, Down, Left or Up, each with Shift+ in front or not.
	pressKey(key string) error
	// screenshot returns what is seen as PNG.
	screenshot() ([]byte, error)
	// end ends the browser; it may have ended.
	end()
}

// notes are what a browser tells by itself.
type notes struct {
	mu       sync.Mutex
	requests []string // URLs
	faults   []string // exceptions that no page caught
	errors   []string // what pages and the browser wrote to the console as errors
}

// add adds a note to one of the lists.
func (n *notes) add(to *[]string, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*to = append(*to, text)
}

// look is how a browser shows pages.
type look struct {
	width, height int64
	dark          bool
}

var desk = look{1440, 900, false}

// noted collects violations of the content security policy, which a page would keep to itself.
const noted = `window.violations = []; addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample));`

// startBrowser starts a browser, which the test's end ends. It takes trusted certificates, as if a person had installed their authorities.
func startBrowser(t *testing.T, l look, trusted ...*x509.Certificate) *browser {
	t.Helper()
	b := &browser{t: t, notes: &notes{}}
	if *firefox {
		b.driver = startFirefox(t, l, len(trusted) > 0, b.notes)
	} else {
		b.driver = startChromium(t, l, trusted, b.notes)
	}
	return b
}

// chromium is the browser where it is Chromium. What Firefox cannot say is not asked of it: the test ends here.
func (b *browser) chromium() *chromium {
	b.t.Helper()
	c, is := b.driver.(*chromium)
	if !is {
		b.t.Skip("only Chromium can say this")
	}
	return c
}

// open opens an address.
func (b *browser) open(address string) { b.t.Helper(); must(b.t, b.navigate(address)) }

// show shows a page of the console that is open, and waits until the page has taken it up: what comes behind #.
func (b *browser) show(hash string) {
	b.t.Helper()
	b.eval(fmt.Sprintf("new Promise((done) => { location.hash = %s; requestAnimationFrame(() => requestAnimationFrame(() => done())) })", quote(hash)), nil)
}

func quote(text string) string {
	out, _ := json.Marshal(text) // a string has a form in JSON
	return string(out)
}

// eval evaluates an expression in the page; into may be nil.
func (b *browser) eval(expression string, into any) {
	b.t.Helper()
	text, err := b.evaluate("Promise.resolve(" + expression + ").then((v) => JSON.stringify(v) ?? 'null')")
	must(b.t, err)
	if into != nil {
		must(b.t, json.Unmarshal([]byte(text), into))
	}
}

// text returns the text of the page.
func (b *browser) text() (text string) {
	b.t.Helper()
	b.eval("document.body.innerText", &text)
	return text
}

// wait waits until an expression is true. One that cannot be evaluated may be so later: the first address leads to another one.
func (b *browser) wait(expression string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		is, err := b.evaluate("Boolean(" + expression + ").toString()")
		if is == "true" {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("not true within a minute: %s (%v)\nthe page:\n%s\nfaults: %v", expression, err, b.text(), b.notes.faults)
		}
	}
}

// waitText waits until the page has a text.
func (b *browser) waitText(text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("document.body?.innerText.includes(%s)", quote(text)))
}

// waitCells waits until the map has n clusters.
func (b *browser) waitCells(n int) {
	b.t.Helper()
	b.wait(fmt.Sprintf(`document.querySelectorAll(".cell").length === %d`, n))
}

// press presses keys as a person does: characters, or names of keys, as in Tab.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		must(b.t, b.pressKey(key))
	}
}

// picture writes a picture of what is seen.
func (b *browser) picture(path string) {
	b.t.Helper()
	seen, err := b.screenshot()
	must(b.t, err)
	small, err := fewColours(seen)
	must(b.t, err)
	must(b.t, os.WriteFile(path, small, 0o644))
}

// checkClean fails the test for exceptions, violations of the policy, and requests that leave the origin.
func (b *browser) checkClean(origin string) {
	b.t.Helper()
	var violations []string
	b.eval("violations", &violations)
	b.notes.mu.Lock()
	defer b.notes.mu.Unlock()
	if len(violations)+len(b.notes.faults) > 0 {
		b.t.Errorf("violations of the policy: %q\nexceptions: %q", violations, b.notes.faults)
	}
	for _, url := range b.notes.requests {
		if !strings.HasPrefix(url, origin+"/") && !strings.HasPrefix(url, "data:") {
			b.t.Errorf("a request left the origin: %s", url)
		}
	}
}

// fewColours returns a picture with its 256 most frequent colours only, and others as the nearest of these: a third of
// the size.
func fewColours(content []byte) ([]byte, error) {
	seen, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	bounds, times := seen.Bounds(), map[color.Color]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			times[seen.At(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(times), func(a, b color.Color) int { return times[b] - times[a] })
	palette := color.Palette(frequent[:min(len(frequent), 256)])
	nearest := map[color.Color]uint8{}
	for c := range times {
		nearest[c] = uint8(palette.Index(c))
	}
	small := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			small.SetColorIndex(x, y, nearest[seen.At(x, y)])
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small)
	return out.Bytes(), err
}
