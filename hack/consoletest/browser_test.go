package consoletest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// browser is one tab of a browser of its own. All that is used of chromedp is in this file.
type browser struct {
	t      *testing.T
	ctx    context.Context
	end    func()
	scheme string // light or dark

	mu       sync.Mutex
	requests []string // URLs
	faults   []string // exceptions that no page caught
	errors   []string // what pages and the browser wrote to the console as errors, if logged was called
}

// look is how a browser shows pages.
type look struct {
	width, height int64
	dark          bool
}

var desk = look{1440, 900, false}

// noted collects violations of the content security policy, which a page would keep to itself.
const noted = `window.violations = []; addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample));`

// startBrowser starts a browser, which the test's end ends. flags are more of chromium's.
func startBrowser(t *testing.T, l look, flags ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	b := &browser{t: t, scheme: "light"}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.WindowSize(int(l.width), int(l.height)),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("no-proxy-server", true))
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(options, flags...)...)
	ctx, closeTab := chromedp.NewContext(allocator)
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	b.ctx, b.end = ctx, sync.OnceFunc(func() { cancel(); closeTab(); end() })
	t.Cleanup(b.end)
	must(t, chromedp.Listen(ctx, b.note))
	if l.dark {
		b.scheme = "dark"
	}
	b.do(chromedp.EmulateViewport(l.width, l.height))
	call(b, network.Enable, network.EnableParams{})
	call(b, runtime.Enable, cdp.Empty{})
	call(b, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	b.onMedium("")
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: noted})
	return b
}

// onMedium has pages look as on a medium: print, or "" for a screen.
func (b *browser) onMedium(medium string) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: b.scheme}}})
}

// call sends a command of the protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, command, params)
	must(b.t, err)
}

func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		b.faults = append(b.faults, text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			text, _ := json.Marshal(e.Args)
			b.errors = append(b.errors, string(text))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.errors = append(b.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// open opens an address.
func (b *browser) open(address string) { b.t.Helper(); b.do(chromedp.Navigate(address)) }

// show shows a page of the console that is open: what comes behind #.
func (b *browser) show(hash string) {
	b.t.Helper()
	b.eval(fmt.Sprintf("void (location.hash = %s)", quote(hash)), nil)
}

func quote(text string) string {
	out, _ := json.Marshal(text) // a string has a form in JSON
	return string(out)
}

// eval evaluates an expression in the page; into may be nil.
func (b *browser) eval(expression string, into any) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("Promise.resolve("+expression+").then((v) => JSON.stringify(v) ?? 'null')", chromedp.EvalAwaitPromise))
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

// wait waits until an expression is true.
func (b *browser) wait(expression string) {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		var is bool
		b.eval("Boolean("+expression+")", &is)
		if is {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("not true within 20s: %s\nthe page:\n%s\nfaults: %v", expression, b.text(), b.faults)
		}
	}
}

// waitText waits until the page has a text.
func (b *browser) waitText(text string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("document.body?.innerText.includes(%s)", quote(text)))
}

// press presses keys as a person does: characters, or names of keys, as in Tab.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	named := map[string]string{"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "Right": kb.ArrowRight, "Down": kb.ArrowDown, "Left": kb.ArrowLeft, "Up": kb.ArrowUp, "Space": " "}
	for _, key := range keys {
		if k := named[key]; k != "" {
			key = k
		}
		for _, r := range key {
			for _, event := range asOneKey(kb.Encode(r)) {
				_, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, *event)
				must(b.t, err)
			}
		}
	}
}

// asOneKey has what a key writes come with its being pressed, as from a keyboard: by itself it would go to whatever has the focus by then, even
// where the page has prevented it.
func asOneKey(events []*input.DispatchKeyEventParams) []*input.DispatchKeyEventParams {
	if len(events) > 1 && events[1].Type == kb.KeyChar {
		events[0].Type, events[0].Text, events[0].UnmodifiedText = kb.KeyDown, events[1].Text, events[1].UnmodifiedText
		return slices.Delete(events, 1, 2)
	}
	return events
}

// busy returns for how many ms of CPU time the page's main thread has worked.
func (b *browser) busy() float64 {
	b.t.Helper()
	metrics, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	must(b.t, err)
	for _, m := range metrics.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value * 1000
		}
	}
	b.t.Fatal("the browser does not say how busy the page is")
	return 0
}

// picture writes a picture of what is seen.
func (b *browser) picture(path string) {
	b.t.Helper()
	seen, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	must(b.t, err)
	small, err := fewColours(seen)
	must(b.t, err)
	must(b.t, os.WriteFile(path, small, 0o644))
}

// printed returns the page as PDF, as it comes out of a printer with its own size of paper.
func (b *browser) printed() []byte {
	b.t.Helper()
	pdf, err := chromedp.Call(b.ctx, page.PrintToPDF, page.PrintToPDFParams{PreferCSSPageSize: new(true)})
	must(b.t, err)
	return pdf.Data
}

// spans are times that depend on when a page is looked at.
var spans = regexp.MustCompile(`\b\d+(s|m|h|d)\b|\d\d? \w{3} \d{4}, \d\d:\d\d:\d\d|\d\d:\d\d:\d\d`)

// tree returns what a screen reader is told of the page: roles, names, and descriptions.
func (b *browser) tree() string {
	b.t.Helper()
	all, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	must(b.t, err)
	nodes := map[accessibility.NodeID]*accessibility.Node{}
	for _, n := range all.Nodes {
		nodes[n.NodeID] = n
	}
	word := func(v *accessibility.Value) (text string) {
		if v != nil {
			_ = json.Unmarshal(v.Value, &text) // what is no text has none
		}
		return text
	}
	var out strings.Builder
	var tell func(id accessibility.NodeID, depth int, above string)
	tell = func(id accessibility.NodeID, depth int, above string) {
		n := nodes[id]
		if n == nil {
			return
		}
		role, name := word(n.Role), word(n.Name)
		if silent := n.Ignored || slices.Contains([]string{"generic", "none", "InlineTextBox"}, role) || role == "StaticText" && name == above; !silent {
			fmt.Fprintln(&out, strings.TrimRight(strings.Join([]string{strings.Repeat("  ", depth) + role, name, word(n.Description)}, " "), " "))
			depth, above = depth+1, name
		}
		for _, child := range n.ChildIDs {
			tell(child, depth, above)
		}
	}
	tell(all.Nodes[0].NodeID, 0, "")
	return spans.ReplaceAllString(out.String(), "TIME")
}

// checkClean fails the test for exceptions, violations of the policy, and requests that leave the origin.
func (b *browser) checkClean(origin string) {
	b.t.Helper()
	var violations []string
	b.eval("violations", &violations)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(violations)+len(b.faults) > 0 {
		b.t.Errorf("violations of the policy: %q\nexceptions: %q", violations, b.faults)
	}
	for _, url := range b.requests {
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
