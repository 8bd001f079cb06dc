package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"
)

// seenConsole is what the console shows, for a test.
type seenConsole struct {
	Cells            int
	User, Live, Text string
}

const seenExpression = `JSON.stringify({Cells: document.querySelectorAll(".cell").length, User: document.querySelector(".user")?.innerText ?? "", Live: document.querySelector(".live")?.innerText ?? "", Text: document.body?.innerText ?? ""})`

// TestTheConsole types `kubectl federation console` and takes the time until the browser, which the command opens, shows the three clusters to a
// person who is logged in, without a warning. The browser runs already, as that of a person does. Acceptance test 1 of the console.
func TestTheConsole(t *testing.T) {
	browser, complaints := openChromium(t)
	opened := filepath.Join(t.TempDir(), "opened")
	desktop := fmt.Sprintf("#!/bin/sh\nprintf %%s \"$1\" >%s.tmp && mv %s.tmp %s\n", opened, opened, opened)
	if err := os.WriteFile(filepath.Join(filepath.Dir(opened), "xdg-open"), []byte(desktop), 0o700); err != nil {
		t.Fatal(err)
	}
	console := exec.Command("kubectl", "federation", "console")
	console.Env = append(os.Environ(), "DISPLAY=:0", "KUBECONFIG="+s.env["FEDERATION_KUBECONFIG"],
		"PATH="+filepath.Dir(opened)+":"+filepath.Join(s.root, "_output", "bin")+":"+os.Getenv("PATH"))
	began := time.Now()
	if err := console.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = console.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = console.Wait()
	})
	var page []byte
	eventually(t, time.Minute, func() string {
		var err error
		if page, err = os.ReadFile(opened); err != nil {
			return "no browser was opened: " + err.Error()
		}
		return ""
	})
	if err := chromedp.Do(browser, chromedp.Navigate("file://"+string(page))); err != nil {
		t.Fatal(err)
	}
	var seen seenConsole
	eventually(t, time.Minute, func() string {
		text, err := chromedp.Run(browser, chromedp.Evaluate[string](seenExpression))
		if err != nil {
			return err.Error() // the page is being replaced
		}
		if err := json.Unmarshal([]byte(text), &seen); err != nil {
			return err.Error()
		}
		if seen.Cells != len(s.members) || seen.User == "" || !strings.Contains(seen.Live, "live") {
			return "the browser shows: " + seen.Text
		}
		return ""
	})
	t.Logf("%.1f s from Enter to the overview, of which the command took %.1f s until the browser was opened", time.Since(began).Seconds(), modified(t, opened).Sub(began).Seconds())
	if seen.User != "federation-admin" || strings.Contains(seen.Text, "cannot be shown") {
		t.Errorf("%s sees:\n%s", seen.User, seen.Text)
	}
	if all := complaints(); len(all) > 0 {
		t.Errorf("the browser complains: %q", all)
	}
}

func modified(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// openChromium starts a browser; complaints are the errors that it has written to its console.
func openChromium(t *testing.T) (tab context.Context, complaints func() []string) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WindowSize(1440, 900),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("no-proxy-server", true))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	errors := make(chan string, 100)
	err := chromedp.Listen(tab, func(event any) {
		if e, is := event.(*log.EventEntryAdded); is && e.Entry.Level != log.EntryLevelInfo && e.Entry.Level != log.EntryLevelVerbose {
			select {
			case errors <- e.Entry.Text + " " + e.Entry.URL:
			default: // a hundred are enough
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(tab, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	return tab, func() (all []string) {
		for {
			select {
			case one := <-errors:
				all = append(all, one)
			default:
				return all
			}
		}
	}
}
