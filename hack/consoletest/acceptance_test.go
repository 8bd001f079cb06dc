package consoletest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

var (
	restarts = flag.Int("restarts", 2, "how often TestThePageCatchesUp restarts the API")
	watchFor = flag.Duration("watch-for", 0, "for how long TestThePageCatchesUp watches, its restarts spread over that time; 0: only for as long as they take")
	update   = flag.Bool("update", false, "write the files of what screen readers announce")
)

const (
	// cells is what the map says of all clusters.
	cells = `[...document.querySelectorAll(".cell")].map((e) => e.getAttribute("aria-label")).sort()`
	// listed is what it is to say, by a list that the API is asked for now.
	listed = `Promise.all([import("/console/api.js"), import("/console/state.js"), import("/console/views/overview.js")])
		.then(([api, state, overview]) => api.list("/apis/federation/v1beta1/clusters").then((all) => all.items.map((c) => overview.about(state.standing(c))).sort()))`
	live = `document.querySelector(".live").innerText`
)

// checkCells fails the test if the map is not what a fresh list says within a minute: events may be on their way.
func (b *browser) checkCells() {
	b.t.Helper()
	var shown, want []string
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		b.eval(listed, &want)
		b.eval(cells, &shown)
		if slices.Equal(shown, want) && len(want) > 0 {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("the page has\n%q, a fresh list\n%q", shown, want)
		}
	}
}

// TestThePageCatchesUp restarts the API under a page again and again, and changes clusters as soon as it is back: the page says that it is
// behind, and is then the same as a fresh list, and as a page that has just been loaded. Acceptance test 4 of the console; for an hour with ten restarts:
// make bench-console.
func TestThePageCatchesUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := fmt.Sprint("--secure-port=", listener.Addr().(*net.TCPAddr).Port)
	must(t, listener.Close())
	s := &server{dir: t.TempDir()}
	s.start(t, port)
	must(t, s.fleet.clusters(6, nil))
	b := startBrowser(t, desk)
	b.open(s.console(t))
	b.waitCells(6)
	b.eval(`void (window.opened = true)`, nil)
	changes := 0
	change := func(message string) {
		t.Helper()
		c := member(changes%6, 6)
		if changes/6%2 == 0 {
			lose(c, v1beta1.PhaseGracePeriod, message)
		}
		must(t, s.fleet.put(c))
		changes++
	}
	for n := range *restarts {
		for end := time.Now().Add(*watchFor / time.Duration(*restarts)); time.Now().Before(end); time.Sleep(time.Second) {
			if change("as time goes by"); changes%60 == 0 {
				b.checkCells()
			}
		}
		b.wait(live + `.includes("live")`)
		ended := time.Now()
		s.end()
		b.wait(live + `.includes("behind")`)
		behind := time.Since(ended)
		s.start(t, port)
		ready := time.Now()
		for range 9 {
			change(fmt.Sprintf("after restart %d", n))
		}
		more := member(0, 6)
		more.Name = fmt.Sprintf("new-%d", n)
		must(t, s.fleet.put(more))
		b.wait(live + `.includes("live")`)
		b.waitCells(7 + n)
		b.checkCells()
		t.Logf("restart %d: the page said %.1f s after the end that it was behind, and had caught up %.1f s after the API was ready; %d changes", n, behind.Seconds(), time.Since(ready).Seconds(), changes)
	}
	var kept, fresh []string
	b.eval(cells, &kept)
	b.wait(`window.opened`) // nothing has loaded it again
	b.eval("(window.before = true, location.reload())", nil)
	b.wait(fmt.Sprintf(`!window.before && document.querySelectorAll(".cell").length === %d`, len(kept)))
	if b.eval(cells, &fresh); !slices.Equal(kept, fresh) {
		t.Errorf("the page has\n%q, one that has just been loaded\n%q", kept, fresh)
	}
}

// TestWhatIfIsThePlan asks the page and the plugin what would happen if each of 20 scopes were lost: both say the same, field by field.
// Acceptance test 12 of the console.
func TestWhatIfIsThePlan(t *testing.T) {
	s := startServer(t)
	must(t, s.fleet.clusters(16, nil), s.fleet.info(), s.fleet.namespace("shop"))
	placed, serve := map[string]int64{}, []string{}
	for i := range 16 {
		c := member(i, 16).Name
		placed[c] = int64(1 + i%5)
		serve = append(serve, c)
	}
	must(t, s.fleet.deployment("shop", "web", placed, "created"), s.fleet.deployment("shop", "api", map[string]int64{"a-a-00": 7, "b-b-03": 2}, "created"), s.fleet.service("shop", "web", serve...), s.fleet.service("shop", "api", "a-a-00", "b-b-03"))
	scopes := []string{"zone region-a/a", "zone region-a/b", "zone region-b/a", "zone region-b/b", "region region-a", "region region-b"}
	for _, c := range serve[:14] {
		scopes = append(scopes, "cluster "+c)
	}
	b := startBrowser(t, desk)
	b.open(s.console(t))
	b.waitCells(16)
	moved := int64(0)
	for _, scope := range scopes {
		level, name, _ := strings.Cut(scope, " ")
		r := &v1beta1.FailoverReview{}
		text := s.plugin("plan", "failover", "--"+level, name, "-o", "json")
		must(t, json.Unmarshal([]byte(strings.TrimSuffix(text, "<nil>")), r))
		moved += r.Status.ReplicasMoved
		b.show(fmt.Sprintf("#/failover?%s=%s", level, strings.ReplaceAll(name, "/", "%2F")))
		b.wait(fmt.Sprintf(`document.querySelector(".lead strong")?.innerText === %s`, quote(name)))
		var got struct {
			Lead           string
			Moves, Records []string
		}
		b.eval(`(() => {document.querySelectorAll("main details").forEach((d) => (d.open = true));
			const rows = (label) => [...document.querySelectorAll('[aria-label="' + label + '"] tbody tr')].map((r) => [...r.cells].map((c) => c.innerText.trim().replace(/\s+/g, " ")).join(" | "));
			return {Lead: document.querySelector(".lead").innerText.replace(/\s+/g, " "), Moves: rows("Moves"), Records: rows("Records")}})()`, &got)
		lead, moves, records := reviewText(name, &r.Status)
		if got.Lead != lead || !slices.Equal(got.Moves, moves) || !slices.Equal(got.Records, records) {
			t.Errorf("%s: the page says\n%q\n%q\n%q\nthe plan\n%q\n%q\n%q", scope, got.Lead, got.Moves, got.Records, lead, moves, records)
		}
	}
	if moved == 0 {
		t.Error("nothing would ever move: this compares nothing")
	}
}

// reviewText is a review as the page writes it.
func reviewText(name string, s *v1beta1.FailoverReviewStatus) (lead string, moves, records []string) {
	where := strings.Join(s.Clusters, ", ")
	if len(s.Clusters) > 10 {
		where = fmt.Sprintf("%d clusters", len(s.Clusters))
	}
	fit := "all fit elsewhere"
	if s.ReplicasUnschedulable > 0 {
		fit = fmt.Sprintf("%d fit nowhere", s.ReplicasUnschedulable)
	}
	lead = fmt.Sprintf("If %s were lost (%s): %d replicas of %d objects would move, %s, and %d record sets would change.", name, where, s.ReplicasMoved, len(s.Moves), fit, len(s.Records))
	for _, m := range s.Moves {
		var changes []string
		for _, c := range m.Clusters {
			changes = append(changes, fmt.Sprintf("%s %d → %d", c.Cluster, c.Before, c.After))
		}
		nowhere := ""
		if m.Unschedulable > 0 {
			nowhere = fmt.Sprint(m.Unschedulable)
		}
		moves = append(moves, fmt.Sprintf("%s %s/%s | %s | %s", m.Kind, m.Namespace, m.Name, strings.TrimSpace(strings.Join(append(changes, m.Reason), " ")), nowhere))
	}
	data := func(all []string) string {
		if len(all) == 0 {
			return "–"
		}
		return strings.Join(all, " ")
	}
	for _, r := range s.Records {
		records = append(records, strings.Join([]string{r.Name, r.Type, data(r.Before), data(r.After)}, " | "))
	}
	return lead, moves, records
}

// acts has the page do something to a cluster, and returns the command that it shows for it.
func (b *browser) acts(cluster, button, typed string) (command string) {
	b.t.Helper()
	b.openAct(cluster, button)
	return b.confirms(typed)
}

// openAct opens the dialog in front of what the page offers to do to a cluster.
func (b *browser) openAct(cluster, button string) {
	b.t.Helper()
	b.show("#/?show=" + cluster)
	offered := fmt.Sprintf(`[...document.querySelectorAll("#drawer .actions button")].find((e) => e.innerText.startsWith(%s))`, quote(button))
	b.wait(fmt.Sprintf(`document.getElementById("drawer").open && document.querySelector("#drawer h2")?.innerText === %s && %s`, quote(cluster), offered))
	b.eval(offered+".click()", nil)
	b.wait(`document.getElementById("act").open`)
}

// confirms confirms what the page is about to do, and returns its command.
func (b *browser) confirms(typed string) (command string) {
	b.t.Helper()
	b.wait(`document.getElementById("act").open`)
	b.eval(`document.querySelector("#act .cli code").innerText`, &command)
	if typed != "" {
		b.wait(`document.activeElement.id === "typed"`) // the dialog opens at it
		b.press(strings.Split(typed, "")...)
	}
	b.wait(`!document.querySelector("#act .actions button").disabled`)
	b.eval(`document.querySelector("#act .actions button").click()`, nil)
	b.wait(`!document.getElementById("act").open`)
	return command
}

// paste runs a command in a shell, where kubectl finds plugins as it does, until the returned function is called.
func (s *server) paste(t *testing.T, command string) (end func()) {
	t.Helper()
	folder, err := filepath.Abs(bin)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	shell := exec.CommandContext(ctx, "bash", "-c", `kubectl() { local plugin=$1; shift; exec "$BIN/kubectl-$plugin" "$@"; }; `+command)
	shell.Env = append(os.Environ(), "BIN="+folder, "KUBECONFIG="+s.config)
	must(t, shell.Start())
	end = func() { cancel(); _ = shell.Wait() } // a command that follows a drain is ended early
	t.Cleanup(end)
	return end
}

// clusterText is what people change of a Cluster, without its name and times.
func (s *server) clusterText(t *testing.T, name string) string {
	t.Helper()
	u, err := s.fleet.admin.Resource(v1beta1.ClustersResource).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	text, err := json.Marshal([]any{u.GetAnnotations(), u.GetLabels(), u.Object["spec"]})
	must(t, err)
	return plain(strings.ReplaceAll(string(text), name, "NAME"))
}

// TestShownCommandsDoTheSame takes ten actions on the page, pastes the command that it shows for each into a shell, for another object of the
// same kind, and compares both. Acceptance test 15 of the console.
func TestShownCommandsDoTheSame(t *testing.T) {
	s, b := openOverview(t, 8)
	const page, shell = "a-a-00", "b-b-01"
	for _, a := range []struct{ button, typed string }{{"Cordon", ""}, {"Uncordon", ""}, {"Drain", page}, {"Undrain", ""}} {
		before := s.clusterText(t, page)
		command := b.acts(page, a.button, a.typed)
		end := s.paste(t, strings.ReplaceAll(command, page, shell))
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			one, two := s.clusterText(t, page), s.clusterText(t, shell)
			if one == two && one != before {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: the page made\n%s, the shell\n%s, of\n%s", command, one, two, before)
			}
		}
		end()
	}
	for i, d := range []struct{ scope, method string }{{"zone=region-a/a", "shift"}, {"region=region-b", "evacuate"}, {"cluster=a-b-00", "isolate"}, {"cluster=b-a-01", "blackhole"}, {"zone=region-b/b", "isolate"}} {
		name := fmt.Sprintf("drill-%d", i)
		level, scope, _ := strings.Cut(d.scope, "=")
		b.show(fmt.Sprintf("#/drills?%s=%s&method=%s", level, strings.ReplaceAll(scope, "/", "%2F"), d.method))
		b.wait(fmt.Sprintf(`document.querySelector('main select[name="scope"]')?.selectedOptions[0].value === %s`, quote(level+":"+scope)))
		b.eval(fmt.Sprintf(`(() => {const f = document.querySelector("main form"); f.elements.name.value = %s; f.elements.method.value = %s; f.elements.hold.value = %d; f.elements.reason.value = "it's $HOME; a \"test\""; f.requestSubmit()})()`, quote(name), quote(d.method), 5+i), nil)
		s.paste(t, strings.ReplaceAll(b.confirms(scope), name, name+"-pasted"))
		one, two := s.drillText(t, name), s.drillText(t, name+"-pasted")
		if one != two || !strings.Contains(one, `it's $HOME`) {
			t.Errorf("the page made\n%s, the shell\n%s", one, two)
		}
	}
	for _, name := range []string{"drill-0", "drill-0-pasted"} {
		s.setDrill(t, name, v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillHolding, Clusters: []string{"a-a-00"}})
	}
	b.show("#/drill/drill-0")
	b.wait(`document.querySelector("main .title .danger")`)
	b.eval(`document.querySelector("main .title .danger").click()`, nil)
	begun := `[...document.querySelectorAll(".runs code")].map((e) => e.innerText).find((c) => c.includes("abort"))`
	b.wait(begun)
	var command string
	b.eval(begun, &command)
	s.paste(t, strings.ReplaceAll(command, "drill-0", "drill-0-pasted"))
	for _, name := range []string{"drill-0", "drill-0-pasted"} {
		s.until(t, name+" is aborted", func() bool { return s.getDrill(t, name).Status.Abort != nil })
	}
	if one, two := s.getDrill(t, "drill-0").Status.Abort, s.getDrill(t, "drill-0-pasted").Status.Abort; one.By != two.By || one.Reason != two.Reason {
		t.Errorf("the page aborted as %+v, the shell as %+v", one, two)
	}
}

// TestADrainOutlivesTheBrowser begins a drain on the page and kills the browser: the drain is the federation's, and undrain works in a
// terminal. Acceptance test 14 of the console; hack/e2e has drains to their end.
func TestADrainOutlivesTheBrowser(t *testing.T) {
	s, b := openOverview(t, 4)
	before := s.clusterText(t, "a-a-00")
	b.acts("a-a-00", "Drain", "a-a-00")
	drained := func() bool { return strings.Contains(s.clusterText(t, "a-a-00"), `"drain":`) }
	s.until(t, "the drain is the federation's", drained)
	b.end()
	time.Sleep(time.Second)
	if !drained() {
		t.Error("the drain ended with the browser")
	}
	end := s.paste(t, "kubectl federation undrain a-a-00")
	s.until(t, "undrain has undone it", func() bool { return s.clusterText(t, "a-a-00") == before })
	end()
}

// TestNoSessionWithoutConsole logs in, and starts the server again, which takes the cookie, and then with --console=false: it takes the cookie no more. Acceptance
// tests 10 and 22 of the console, with TestLoginWithAToken and TestWithoutConsole.
func TestNoSessionWithoutConsole(t *testing.T) {
	s := startServer(t)
	client := s.client(t)
	asks := func(method, path string, body string, cookies ...*http.Cookie) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.admin.Host+path, strings.NewReader(body))
		must(t, err)
		r.Header.Set("X-Federation-Console", "1")
		r.Header.Set("Content-Type", "application/json")
		for _, c := range cookies {
			r.AddCookie(c)
		}
		answer, err := client.Do(r)
		must(t, err)
		must(t, answer.Body.Close())
		return answer
	}
	token := s.tokenOf(t, "viewer")
	anonymous := func() {
		t.Helper()
		transport, err := rest.TransportFor(rest.AnonymousClientConfig(s.admin))
		must(t, err)
		client.Transport = transport
	}
	anonymous()
	cookies := asks("POST", "/console/session", fmt.Sprintf(`{"token":%s}`, quote(token))).Cookies()
	if with := asks("GET", "/api/v1/namespaces", "", cookies...); with.StatusCode != http.StatusOK || len(cookies) == 0 {
		t.Fatalf("%d cookies, with which the API answers %s", len(cookies), with.Status)
	}
	s.end()
	s.start(t, "--secure-port", "0")
	anonymous()
	if again := asks("GET", "/api/v1/namespaces", "", cookies...); again.StatusCode != http.StatusOK {
		t.Errorf("after a restart the session is %s", again.Status)
	}
	s.end()
	s.start(t, "--secure-port", "0", "--console=false")
	anonymous()
	for _, path := range []string{"/api/v1/namespaces", "/console/", "/console/session"} { // to whom the API knows the others are not there, either: TestWithoutConsole
		if answer := asks("GET", path, "", cookies...); answer.StatusCode != http.StatusUnauthorized || len(answer.Cookies()) > 0 {
			t.Errorf("%s answers %s with cookies %v, want 401 and none", path, answer.Status, answer.Cookies())
		}
	}
}

// TestTheTreeOfScreenReaders compares what a screen reader is told of the overview and of a drill with what a person has read and found whole:
// state, number and unit of everything shown. -update writes the files. Acceptance test 19 of the console.
func TestTheTreeOfScreenReaders(t *testing.T) {
	s := startServer(t)
	seedFew(t, s)
	b := startBrowser(t, desk)
	b.open(s.console(t))
	b.waitText("Problems, oldest first")
	for _, p := range []struct{ name, hash, ready string }{
		{"overview", "#/", `document.body.innerText.includes("all as desired") && document.querySelector(".user")`},
		{"drill", "#/drill/weekly-47", `document.querySelectorAll("svg[role=img]").length === 4`},
	} {
		b.show(p.hash)
		b.wait(p.ready)
		time.Sleep(time.Second) // what is asked for beside it
		file := filepath.Join("spoken", p.name+".txt")
		got := b.tree()
		if *update {
			must(t, os.WriteFile(file, []byte(got), 0o644))
		}
		want, err := os.ReadFile(file)
		must(t, err)
		if got != string(want) {
			t.Errorf("%s: a screen reader is told\n%s\nwant\n%s", p.name, got, want)
		}
	}
}

// tabTo presses Tab until the focus is on what an expression says of e.
func (b *browser) tabTo(expression string) { b.t.Helper(); b.pressUntil("Tab", expression) }

// pressUntil presses a key until the focus is on what an expression says of e; on its way the focus can always be seen.
func (b *browser) pressUntil(key, expression string) {
	b.t.Helper()
	for range 80 {
		b.press(key)
		var at struct {
			There, Seen bool
			What        string
		}
		b.eval(fmt.Sprintf(`((e) => ({There: Boolean(%s), Seen: e === document.body || e.matches(":focus-visible") && getComputedStyle(e).outlineStyle !== "none" && e.checkVisibility(), What: e.outerHTML.slice(0, 100)}))(document.activeElement)`, expression), &at)
		if !at.Seen {
			b.t.Errorf("the focus cannot be seen on %s", at.What)
		}
		if at.There {
			return
		}
	}
	b.t.Fatalf("%s never comes to %s", key, expression)
}

// TestDrillsByKeyboard asks what would happen, begins a drill and aborts it without a mouse. With TestKeyboardAlone, which drains, it is acceptance
// test 18 of the console.
func TestDrillsByKeyboard(t *testing.T) {
	s, b := openOverview(t, 4)
	b.press("g", "f")
	b.waitText("What if …")
	b.tabTo(`e.name === "scope"`)
	b.press("Down")
	b.tabTo(`e.innerText === "Ask"`)
	b.press("Enter")
	b.waitText("If region-a/b were lost")
	b.wait(`[...document.querySelectorAll("main .button")].some((e) => e.innerText.startsWith("Drill this"))`)
	b.tabTo(`e.innerText?.startsWith("Drill this")`)
	b.press("Enter")
	b.waitText("Begin a drill")
	b.tabTo(`e.name === "method"`)
	b.press("i")
	b.tabTo(`e.name === "reason"`)
	b.press("t", "r", "y")
	b.tabTo(`e.name === "name"`)
	b.press("b", "y", "-", "k", "e", "y")
	b.tabTo(`e.innerText?.startsWith("Begin")`)
	b.press("Enter")
	b.wait(`document.getElementById("act").open`)
	b.wait(`document.activeElement.id === "typed"`) // the dialog opens at it
	b.press(append(strings.Split("region-a/b", ""), "Enter")...)
	b.wait(`!document.getElementById("act").open`)
	b.wait(`document.activeElement.innerText?.startsWith("Begin")`) // the focus is back
	s.drillText(t, "by-key")
	if d := s.getDrill(t, "by-key"); d.Spec.Method != v1beta1.DrillIsolation || !slices.Equal(d.Spec.Scope.Zones, []string{"region-a/b"}) || d.Spec.Reason != "try" {
		t.Errorf("the keyboard made %+v", d.Spec)
	}
	s.setDrill(t, "by-key", v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillHolding, Clusters: []string{"a-b-00"}})
	b.wait(`document.querySelector(".band")`)
	b.pressUntil("Shift+Tab", `e.innerText === "by-key"`) // it is above
	b.press("Enter")
	b.wait(`document.querySelector("main .title .danger")`)
	b.tabTo(`e.matches("main .title .danger")`)
	b.press("Enter")
	s.until(t, "it is aborted", func() bool { return s.getDrill(t, "by-key").Status.Abort != nil })
}

// TestAbortWhileListsLoad aborts drills while the lists of the page are asked for and nothing comes: by one click, and by the keyboard. With
// TestDrillsByKeyboard it is acceptance test 16 of the console.
func TestAbortWhileListsLoad(t *testing.T) {
	s, b := openOverview(t, 4)
	for _, name := range []string{"clicked", "typed"} {
		must(t, s.fleet.withStatus(s.fleet.admin, unstructuredOf(&v1beta1.FailoverDrill{
			TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverDrill"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1beta1.FailoverDrillSpec{Method: v1beta1.DrillIsolation, Scope: v1beta1.FailoverDrillScope{Clusters: []string{"a-a-00"}}, Reason: "try"},
		}), v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillHolding, Clusters: []string{"a-a-00"}}, v1beta1.FailoverDrillsResource))
		b.wait(fmt.Sprintf(`document.querySelector(".band")?.innerText.includes(%s)`, quote(name)))
		b.eval(`void (window.real ??= fetch, window.fetch = (path, ...how) => (/deployments|services|events/.test(path) ? new Promise(() => {}) : real(path, ...how)))`, nil)
		for _, page := range []string{"workloads", "services", "events"} {
			b.eval(fmt.Sprintf(`void (location.hash = "#/%s")`, page), nil)
			b.waitText("Loading")
		}
		if name == "clicked" {
			b.eval(`document.querySelector(".band .danger").click()`, nil)
		} else {
			b.pressUntil("Tab", `e.matches(".band .danger")`)
			b.press("Enter")
		}
		s.until(t, name+" is aborted", func() bool { return s.getDrill(t, name).Status.Abort != nil })
		s.setDrill(t, name, v1beta1.FailoverDrillStatus{Phase: v1beta1.DrillFinished, Outcome: v1beta1.DrillInterrupted})
		b.wait(`!document.querySelector(".band")`)
	}
}
