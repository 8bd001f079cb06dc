package consoletest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// reachable has Cluster number i of n be at an address, with a credential for it.
func (s *server) reachable(t *testing.T, i, n int, address, token string, ca []byte) {
	t.Helper()
	c := member(i, n)
	c.Spec.ServerAddressByClientCIDRs[0].ServerAddress = address
	c.Spec.SecretRef = &corev1.LocalObjectReference{Name: c.Name}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: c.Name}, StringData: map[string]string{"token": token, "ca.crt": string(ca)}}
	_, err := s.kube.CoreV1().Secrets(secret.Namespace).Create(context.Background(), secret, metav1.CreateOptions{})
	must(t, err, s.fleet.put(c))
}

// silence takes connections and never says anything.
func silence(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	}()
	return listener.Addr().String()
}

// TestASilentMember opens the pages of a workload, a Service and an Ingress while the API of one member takes connections and says nothing, and
// that of another one answers: what is known is shown without waiting for the silent one, of which the page then says so. Acceptance
// test 21 of the console.
func TestASilentMember(t *testing.T) {
	s, answers := startServer(t), startServer(t)
	s.reachable(t, 0, 4, strings.TrimPrefix(answers.admin.Host, "https://"), answers.tokenOf(t, "member"), answers.admin.CAData)
	s.reachable(t, 1, 4, silence(t), "t", nil)
	must(t, s.fleet.info(), s.fleet.namespace("shop"), s.fleet.deployment("shop", "web", map[string]int64{"a-a-00": 2, "a-b-00": 1}, "created"), s.fleet.service("shop", "web", "a-a-00"), s.fleet.ingress("shop", "front", "web"))
	b := startBrowser(t, desk)
	b.open(s.console(t))
	b.waitCells(2)
	for _, hash := range []string{"#/workload/deployments.apps/shop/web", "#/service/shop/web", "#/ingress/shop/front"} {
		b.eval(fmt.Sprintf(`void (window.shown = new Promise((done) => {
			const began = performance.now(), row = (name) => [...document.querySelectorAll('[aria-label="Clusters"] tbody tr')].find((r) => r.innerText.startsWith(name))?.innerText ?? "";
			const look = () => row("a-a-00").includes("missing") ? done([performance.now() - began, row("a-b-00")]) : requestAnimationFrame(look);
			location.hash = %s;
			requestAnimationFrame(look);
		}))`, quote(hash)), nil)
		var shown [2]any
		b.eval("shown", &shown)
		after, silent := shown[0].(float64), shown[1].(string)
		if !strings.Contains(silent, "no answer within 300ms") || after > 3000 {
			t.Errorf("%s: shown after %.0f ms; of the silent one it says %q", hash, after, silent)
		}
		within(t, after <= 1000, hash+", in ms", after, 1000)
		var whole float64
		b.eval(`void (window.began = performance.now())`, nil)
		b.wait(`[...document.querySelectorAll('[aria-label="Clusters"] tbody tr')].some((r) => r.innerText.startsWith("a-b-00") && r.innerText.includes("no answer within 3s"))`)
		b.eval(`performance.now() - began`, &whole)
		t.Logf("%s: shown after %.0f ms, and with what it says of the silent one %.0f ms later", hash, after, whole)
		b.show("#/")
		b.wait(`document.querySelector(".cell")`)
	}
}
