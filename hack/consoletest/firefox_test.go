package consoletest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// firefoxTab drives Debian's Firefox ESR, which speaks WebDriver BiDi itself: https://w3c.github.io/webdriver-bidi/.
type firefoxTab struct {
	conn    *websocket.Conn
	context string // the tab's
	kill    func()
	notes   *notes

	mu      sync.Mutex // held while a command is written, too
	last    int
	answers map[int]chan bidiMessage
	gone    error // why no answer comes any more
}

// bidiMessage is what the browser sends: the answer of a command, or an event.
type bidiMessage struct {
	ID      int             `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
	Message string          `json:"message"`
}

// preferences keep Firefox at this machine, and have it prefer light or dark pages. Everything that is not on the loopback goes by a proxy that is not
// there.
const preferences = `user_pref("layout.css.prefers-color-scheme.content-override", %d);
user_pref("network.proxy.type", 1);
user_pref("network.proxy.socks", "127.0.0.1");
user_pref("network.proxy.socks_port", 9);
user_pref("network.proxy.socks_remote_dns", true);
`

func startFirefox(t *testing.T, l look, takesAnyCertificate bool, n *notes) *firefoxTab {
	t.Helper()
	profile, scheme := t.TempDir(), 1
	if l.dark {
		scheme = 0
	}
	must(t, os.WriteFile(filepath.Join(profile, "user.js"), fmt.Appendf(nil, preferences, scheme), 0o600))
	t.Setenv("HOME", profile) // Firefox does not run in a home of another user
	const ready = "WebDriver BiDi listening on "
	line, kill := process(t, ready, firefoxProgram, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0")
	conn, answer, err := websocket.DefaultDialer.DialContext(t.Context(), strings.TrimPrefix(line, ready)+"/session", nil)
	must(t, err)
	must(t, answer.Body.Close())
	f := &firefoxTab{conn: conn, kill: kill, notes: n, answers: map[int]chan bidiMessage{}}
	go f.listen()
	var tab struct{ Context string }
	must(t, f.call("session.new", values{"capabilities": values{"alwaysMatch": values{"acceptInsecureCerts": takesAnyCertificate}}}, nil),
		f.call("script.addPreloadScript", values{"functionDeclaration": "() => {" + noted + "}"}, nil),
		f.call("browsingContext.create", values{"type": "tab"}, &tab)) // in the first one the focus is on the address
	f.context = tab.Context
	must(t, f.call("session.subscribe", values{"events": []string{"network.beforeRequestSent", "log.entryAdded"}, "contexts": []string{f.context}}, nil),
		f.call("browsingContext.setViewport", values{"context": f.context, "viewport": values{"width": l.width, "height": l.height}}, nil))
	return f
}

type values = map[string]any

// call sends a command and waits for its answer; into may be nil.
func (f *firefoxTab) call(method string, params values, into any) error {
	answer := make(chan bidiMessage, 1)
	if err := f.send(method, params, answer); err != nil {
		return err
	}
	select {
	case m := <-answer:
		if m.Error != "" {
			return fmt.Errorf("%s: %s: %s", method, m.Error, m.Message)
		}
		if into == nil {
			return nil
		}
		return json.Unmarshal(m.Result, into)
	case <-time.After(time.Minute):
		return fmt.Errorf("%s: no answer within a minute", method)
	}
}

func (f *firefoxTab) send(method string, params values, answer chan bidiMessage) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone != nil {
		return fmt.Errorf("%s: %w", method, f.gone)
	}
	f.last++
	f.answers[f.last] = answer
	return f.conn.WriteJSON(values{"id": f.last, "method": method, "params": params})
}

// listen takes what the browser sends, until it is gone.
func (f *firefoxTab) listen() {
	for {
		var m bidiMessage
		err := f.conn.ReadJSON(&m)
		if err == nil && m.ID == 0 {
			f.note(m)
			continue
		}
		f.mu.Lock()
		if err != nil {
			f.gone = errors.Join(errors.New("Firefox is gone"), err)
			for _, answer := range f.answers {
				answer <- bidiMessage{Error: "gone", Message: f.gone.Error()}
			}
		} else if answer := f.answers[m.ID]; answer != nil {
			answer <- m
			delete(f.answers, m.ID)
		}
		f.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// ownFault is what Firefox reports of itself once, also where the only page is an empty one.
const ownFault = `Error: Permission denied to access property "length"`

func (f *firefoxTab) note(event bidiMessage) {
	var told struct {
		Request struct{ URL string }
		Type    string
		Level   string
		Text    string
	}
	if json.Unmarshal(event.Params, &told) != nil {
		return
	}
	switch {
	case told.Request.URL != "":
		f.notes.add(&f.notes.requests, told.Request.URL)
	case told.Text == ownFault:
	case told.Type == "javascript" && told.Level == "error":
		f.notes.add(&f.notes.faults, told.Text)
	case told.Level == "error":
		f.notes.add(&f.notes.errors, told.Text)
	}
}

func (f *firefoxTab) end() {
	_ = f.conn.Close() // it goes away in any case
	f.kill()
}

func (f *firefoxTab) navigate(address string) error {
	return f.call("browsingContext.navigate", values{"context": f.context, "url": address, "wait": "complete"}, nil)
}

func (f *firefoxTab) evaluate(expression string) (string, error) {
	var done struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Text string }
	}
	err := f.call("script.evaluate", values{"expression": expression, "target": values{"context": f.context}, "awaitPromise": true}, &done)
	if err == nil && done.ExceptionDetails != nil {
		err = errors.New(done.ExceptionDetails.Text)
	}
	text, _ := done.Result.Value.(string) // as promised
	return text, err
}

const shift = "\ue008"

// keyCodes are the characters that stand for keys that write none.
var keyCodes = map[string]string{"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015"}

func (f *firefoxTab) pressKey(key string) error {
	plain, shifted := strings.CutPrefix(key, "Shift+")
	plain = cmp.Or(keyCodes[plain], plain)
	actions := []values{{"type": "keyDown", "value": plain}, {"type": "keyUp", "value": plain}}
	if shifted {
		actions = []values{{"type": "keyDown", "value": shift}, actions[0], actions[1], {"type": "keyUp", "value": shift}}
	}
	return f.call("input.performActions", values{"context": f.context, "actions": []values{{"type": "key", "id": "keyboard", "actions": actions}}}, nil)
}

func (f *firefoxTab) screenshot() ([]byte, error) {
	var taken struct{ Data string }
	if err := f.call("browsingContext.captureScreenshot", values{"context": f.context}, &taken); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(taken.Data)
}
