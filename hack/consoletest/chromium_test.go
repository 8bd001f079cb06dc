package consoletest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// chromium drives Debian's Chromium. All that is used of chromedp is in this file.
type chromium struct {
	ctx    context.Context
	cancel func()
	scheme string // light or dark
	notes  *notes
}

func startChromium(t *testing.T, l look, trusted []*x509.Certificate, n *notes) *chromium {
	t.Helper()
	c := &chromium{scheme: "light", notes: n}
	if l.dark {
		c.scheme = "dark"
	}
	var keys []string
	for _, one := range trusted {
		sum := sha256.Sum256(one.RawSubjectPublicKeyInfo)
		keys = append(keys, base64.StdEncoding.EncodeToString(sum[:]))
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromiumProgram), chromedp.NoSandbox, chromedp.WindowSize(int(l.width), int(l.height)),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("no-proxy-server", true), chromedp.Flag("ignore-certificate-errors-spki-list", strings.Join(keys, ",")))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute+max(*watchFor, *eventsFor))
	c.ctx, c.cancel = ctx, sync.OnceFunc(func() { cancel(); closeTab(); end() })
	t.Cleanup(c.cancel)
	must(t, chromedp.Listen(ctx, c.note), chromedp.Do(ctx, chromedp.EmulateViewport(l.width, l.height)))
	must(t, called(c, network.Enable, network.EnableParams{}), called(c, runtime.Enable, cdp.Empty{}), called(c, log.Enable, cdp.Empty{}),
		called(c, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}), c.onMedium(""),
		called(c, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: noted}))
	return c
}

// called sends a command of the protocol whose answer nobody needs.
func called[P, R any](c *chromium, command cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(c.ctx, command, params)
	return err
}

func (c *chromium) note(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		c.notes.add(&c.notes.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		c.notes.add(&c.notes.faults, text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			text, _ := json.Marshal(e.Args) // they came as JSON
			c.notes.add(&c.notes.errors, string(text))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			c.notes.add(&c.notes.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

func (c *chromium) end() { c.cancel() }

func (c *chromium) navigate(address string) error {
	return chromedp.Do(c.ctx, chromedp.Navigate(address))
}

func (c *chromium) evaluate(expression string) (string, error) {
	return chromedp.Run(c.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
}

func (c *chromium) screenshot() ([]byte, error) {
	return chromedp.Run(c.ctx, chromedp.CaptureScreenshot())
}

// onMedium has pages look as on a medium: print, or "" for a screen.
func (c *chromium) onMedium(medium string) error {
	return called(c, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: c.scheme}}})
}

const shiftModifier = 8 // of the protocol

func (c *chromium) pressKey(key string) error {
	named := map[string]string{"Tab": kb.Tab, "Enter": kb.Enter, "Escape": kb.Escape, "Right": kb.ArrowRight, "Down": kb.ArrowDown, "Left": kb.ArrowLeft, "Up": kb.ArrowUp}
	plain, shifted := strings.CutPrefix(key, "Shift+")
	for _, r := range cmp.Or(named[plain], plain) {
		for _, event := range asOneKey(kb.Encode(r)) {
			if shifted {
				event.Modifiers |= shiftModifier
			}
			if err := called(c, input.DispatchKeyEvent, *event); err != nil {
				return err
			}
		}
	}
	return nil
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
func (b *browser) busy() float64 { b.t.Helper(); return b.metric("TaskDuration") * 1000 }

// metric returns one of the figures that the browser keeps of a page.
func (b *browser) metric(name string) float64 {
	b.t.Helper()
	metrics, err := chromedp.Call(b.chromium().ctx, performance.GetMetrics, cdp.Empty{})
	must(b.t, err)
	for _, m := range metrics.Metrics {
		if m.Name == name {
			return m.Value
		}
	}
	b.t.Fatalf("the browser does not say its %s", name)
	return 0
}

// kept returns a metric of what stays once all is collected that nothing refers to any more.
func (b *browser) kept(name string) float64 {
	b.t.Helper()
	must(b.t, called(b.chromium(), heapprofiler.CollectGarbage, cdp.Empty{}))
	return b.metric(name)
}

// processes returns the browser's processes of a kind, or all, that which has worked most first: of the renderers the one that shows the page.
func (b *browser) processes(kind string) (pids []int) {
	b.t.Helper()
	all, err := chromedp.CallBrowser(b.chromium().ctx, systeminfo.GetProcessInfo, cdp.Empty{})
	must(b.t, err)
	slices.SortFunc(all.ProcessInfo, func(p, q *systeminfo.ProcessInfo) int { return cmp.Compare(q.CPUTime, p.CPUTime) })
	for _, p := range all.ProcessInfo {
		if kind == "" || p.Type == kind {
			pids = append(pids, int(p.ID))
		}
	}
	return pids
}

// printed returns the page as PDF, as it comes out of a printer with its own size of paper.
func (b *browser) printed() []byte {
	b.t.Helper()
	pdf, err := chromedp.Call(b.chromium().ctx, page.PrintToPDF, page.PrintToPDFParams{PreferCSSPageSize: new(true)})
	must(b.t, err)
	return pdf.Data
}

// spans are times that depend on when a page is looked at.
var spans = regexp.MustCompile(`\b\d+(s|m|h|d)\b|\d\d? \w{3} \d{4}, \d\d:\d\d:\d\d|\d\d:\d\d:\d\d`)

// tree returns the page as a screen reader receives it: roles, names, and descriptions.
func (b *browser) tree() string {
	b.t.Helper()
	all, err := chromedp.Call(b.chromium().ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
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
