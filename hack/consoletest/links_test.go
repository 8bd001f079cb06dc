package consoletest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// links makes links to other tools, or replaces them.
func (f *fleet) links(links map[string]string) error {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.ConsoleLinksConfigMap}, Data: links}
	_, err := f.kube.CoreV1().ConfigMaps(m.Namespace).Create(context.Background(), m, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = f.kube.CoreV1().ConfigMaps(m.Namespace).Update(context.Background(), m, metav1.UpdateOptions{})
	}
	return err
}

// TestLinks has an administrator make links, and a user of one namespace see them: each where all of its placeholders are known, and in words
// what is wrong with those that cannot be made.
func TestLinks(t *testing.T) {
	s := startServer(t)
	seedFew(t, s)
	must(t, s.fleet.links(map[string]string{
		"1": "Grafana https://grafana.example.com/d/w?ns={namespace}&name={name}", "2": "Argo CD http://argo.example.com/{kind}/{name}", "3": "Logs there https://logs.example.com/{cluster}/{name}",
		"4": "Nodes https://grafana.example.com/nodes/{cluster}", "5": "Run it javascript:window.hurt=1", "6": "Which https://example.com/{pod}",
	}))
	s.bind(t, "nora", "view", "shop")
	s.bind(t, "nora", "federation-cluster-viewer", "")
	b := startBrowser(t, desk)
	b.open(s.console(t, "--as", "nora", "--namespace", "shop"))
	b.waitText("Problems, oldest first")
	for _, page := range []struct {
		hash, in string
		want     []string
	}{
		{"#/workload/deployments.apps/shop/web", "main", []string{"Grafana https://grafana.example.com/d/w?ns=shop&name=web", "Argo CD http://argo.example.com/Deployment/web"}},
		{"#/service/shop/web", "main", []string{"Grafana https://grafana.example.com/d/w?ns=shop&name=web", "Argo CD http://argo.example.com/Service/web"}},
		{"#/ingress/shop/front", "main", []string{"Grafana https://grafana.example.com/d/w?ns=shop&name=front", "Argo CD http://argo.example.com/Ingress/front"}},
		{"#/workload/deployments.apps/shop/%3F%2F%26?show=a-a-00", "#drawer", []string{"Logs there https://logs.example.com/a-a-00/%3F%2F%26", "Nodes https://grafana.example.com/nodes/a-a-00"}},
		{"#/?show=a-a-00", "#drawer", []string{"Nodes https://grafana.example.com/nodes/a-a-00"}},
	} {
		b.show(page.hash)
		list := "document.querySelector(" + quote(page.in+" .links") + ")"
		b.wait(fmt.Sprintf("%s?.querySelectorAll('a').length === %d", list, len(page.want)))
		var got []string
		b.eval(`[...`+list+`.querySelectorAll("a")].map((e) => e.innerText + " " + e.href)`, &got)
		if !slices.Equal(got, page.want) {
			t.Errorf("%s has the links %q, want %q", page.hash, got, page.want)
		}
		b.waitText(`5: "Run it javascript:window.hurt=1" must be a title and a URL`)
		b.waitText("6: {pod} must be {cluster}, {kind}, {namespace} or {name}")
	}
	b.checkClean(origin(t, s.address))
}
