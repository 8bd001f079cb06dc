package consoletest

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func (s *server) client(t *testing.T) *http.Client {
	t.Helper()
	client, err := rest.HTTPClientFor(s.admin)
	must(t, err)
	return client
}

// plugin runs the plugin and returns all that it prints.
func (s *server) plugin(args ...string) string {
	out, err := exec.Command(bin+"kubectl-federation", append(args, "--kubeconfig", s.config)...).CombinedOutput()
	return fmt.Sprintf("%s%v", out, err)
}

func (s *server) bind(t *testing.T, user, role, namespace string) {
	t.Helper()
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	meta := metav1.ObjectMeta{GenerateName: "console-"}
	var err error
	if namespace == "" {
		_, err = s.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
	} else {
		_, err = s.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref}, metav1.CreateOptions{})
	}
	must(t, err)
}

// TestAViewer sees everything and is offered nothing; what is forced by hand is refused in the server's words. Acceptance test 9 of the console, with
// TestAUserOfOneNamespace.
func TestAViewer(t *testing.T) {
	s := startServer(t)
	seedFew(t, s)
	s.bind(t, "vera", "view", "")
	s.bind(t, "vera", "federation-cluster-viewer", "")
	b := startBrowser(t, desk)
	address := s.console(t, "--as", "vera")
	b.open(address)
	b.waitText("vera")
	for _, hash := range []string{"#/?show=a-a-00", "#/drills", "#/failover?zone=region-a%2Fa"} {
		b.show(hash)
		b.wait(`!document.querySelector("main .loading")`)
		var offered []string
		b.eval(`[...document.querySelectorAll("button, .button")].map((e) => e.innerText).filter((w) => /Cordon|Drain|Drill|Begin|Abort/.test(w))`, &offered)
		if len(offered) > 0 {
			t.Errorf("%s offers %q", hash, offered)
		}
	}
	const force = `fetch("/apis/federation/v1beta1/clusters/a-a-00", {method: "PATCH", headers: {"X-Federation-Console": localStorage.getItem("gate"), "Content-Type": "application/merge-patch+json"}, body: '{"spec":{"dnsWeight":1}}'}).then((r) => r.status)`
	var status int
	if b.eval(force, &status); status != http.StatusForbidden {
		t.Errorf("a forced change answers %d", status)
	}
	forced := []string{`{"do":"cordon","name":"a-a-00"}`, `{"do":"uncordon","name":"a-a-01"}`, `{"do":"drain","name":"a-a-00","confirm":"a-a-00"}`, `{"do":"undrain","name":"a-b-00"}`, `{"do":"abort","name":"weekly-47"}`,
		`{"do":"drill","zone":"region-a/a","method":"shift","hold":"5m","reason":"x","confirm":"region-a/a"}`}
	const headers = `{"X-Federation-Console": localStorage.getItem("gate"), "Content-Type": "application/json"}`
	for _, action := range forced {
		if b.eval(`fetch("/local/runs", {method: "POST", headers: `+headers+`, body: `+quote(action)+`}).then((r) => r.status)`, &status); status >= http.StatusBadRequest {
			t.Errorf("%s is not begun: %d", action, status)
		}
	}
	b.wait(`(fetch("/local/runs", {headers: ` + headers + `}).then((r) => r.json()).then((all) => (window.begun = all)), window.begun?.length === 6 && begun.every((r) => r.ended))`)
	var others []string
	b.eval(`begun.filter((r) => !/User "vera" cannot/.test(r.error)).map((r) => r.command + ": " + r.error)`, &others)
	if len(others) > 0 {
		t.Errorf("these are not refused in the server's words: %q", others)
	}
	b.open(address)
	b.waitText(`User "vera" cannot patch resource "clusters"`)
}

// TestAUserOfOneNamespace sees that namespace and no error page.
func TestAUserOfOneNamespace(t *testing.T) {
	s := startServer(t)
	seedFew(t, s)
	s.bind(t, "nora", "view", "shop")
	b := startBrowser(t, desk)
	b.open(s.console(t, "--as", "nora", "--namespace", "shop"))
	b.waitText("You may not see clusters.")
	b.waitText("Workloads in namespace shop")
	b.eval(`document.querySelector('main a[href="#/workloads"]').click()`, nil)
	b.wait(`[...document.querySelectorAll("main tbody a")].some((a) => a.innerText === "web")`)
	for _, hash := range []string{"#/events", "#/services"} {
		b.show(hash)
		b.wait(`document.querySelector("main tbody tr")`)
	}
	if text := b.text(); strings.Contains(text, "forbidden") {
		t.Errorf("a page shows an error:\n%s", text)
	}
}

// TestKeyboardAlone goes through the map and drains a cluster without a mouse. What the page asks for is what the terminal
// would: the federation, which does not run here, is to drain the cluster, and undrain begins from there. Acceptance tests 16 and 18 of the console, with TestDrillsByKeyboard.
func TestKeyboardAlone(t *testing.T) {
	_, b := openOverview(t, 4)
	b.wait(`document.querySelector(".user")`)
	focused := func() (name string) {
		b.eval(`document.activeElement.dataset.name ?? document.activeElement.innerText.split("\n")[0]`, &name)
		return name
	}
	b.press("Tab")
	for range 40 {
		if strings.HasPrefix(focused(), "a-a") {
			break
		}
		b.press("Tab")
	}
	if first := focused(); first != "a-a-00" {
		t.Fatalf("Tab comes to %q", first)
	}
	b.press("Down", "Enter")
	b.wait(`document.getElementById("drawer").open`)
	b.waitText("kubectl describe cluster a-b-00")
	b.press("Escape")
	b.wait(`!document.getElementById("drawer").open && !location.hash.includes("show")`)
	if again := focused(); again != "a-b-00" {
		t.Errorf("the focus does not come back to the map, but to %q", again)
	}
	b.press("Enter")
	b.wait(`document.getElementById("drawer").open`)
	b.wait(`["Cordon", "Drain"].every(name => [...document.querySelectorAll("#drawer button")].some(b => b.innerText.startsWith(name)))`) // the answer which acts are allowed takes a moment
	for range 30 {
		if b.press("Tab"); focused() == "Cordon" {
			break
		}
	}
	if at := focused(); at != "Cordon" {
		t.Fatalf("Tab comes to %q", at)
	}
	b.press("Tab", "Enter")
	b.wait(`document.getElementById("act").open`)
	b.waitText("To begin, type a-b-00")
	var disabled bool
	if b.eval(`document.querySelector("#act .danger").disabled`, &disabled); !disabled {
		t.Error("drain is offered before its cluster is typed")
	}
	b.wait(`document.activeElement.id === "typed"`) // the dialog opens at it
	b.press("a", "-", "b", "-", "0", "0", "Enter")
	b.wait(`!document.getElementById("act").open`)
	b.waitText("kubectl federation drain a-b-00")
	b.wait(`document.querySelector('[data-name="a-b-00"]')?.getAttribute("aria-label").includes("draining")`)
}
