package plan

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

const frontIngress = `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"namespace":"shop","name":"front","uid":"front-uid","creationTimestamp":"2026-01-01T11:00:00Z"},"spec":{
	"ingressClassName":"federation","tls":[{"hosts":["www.example.com"],"secretName":"www"}],"rules":[
	{"host":"www.example.com","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":80}}}},
		{"path":"/old","pathType":"Exact","backend":{"service":{"name":"old","port":{"number":80}}}}]}},
	{"host":"bank.example.org","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"web","port":{"number":80}}}}]}}]}}`

const bankIngress = `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"namespace":"bank","name":"login","creationTimestamp":"2026-01-01T10:00:00Z"},"spec":{
	"ingressClassName":"federation","rules":[{"host":"bank.example.org","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"login","port":{"number":80}}}}]}}]}}`

const webService = `{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web","uid":"web-uid"},"spec":{"type":"LoadBalancer","ports":[{"name":"http","protocol":"TCP","port":80}]}}`

func registeredLease(name, says, out string, ago time.Duration) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.LoadBalancersNamespace, Name: name, Annotations: map[string]string{v1beta1.LoadBalancerAnnotation: says}}}
	if out != "" {
		l.Annotations[v1beta1.LoadBalancerOutAnnotation] = out
	}
	l.Spec.RenewTime = new(metav1.NewMicroTime(seenAt.Add(-ago)))
	return l
}

const eastSays, westSays = `{"region":"east","zone":"a","addresses":["192.0.2.80"]}`, `{"region":"west","addresses":["192.0.2.90","2001:db8::90"]}`

// frontEvidence has an Ingress whose Service is in five clusters: one serves in each of two regions, one more there is drained, one is lost,
// and one has no endpoint ready; a sixth has nothing of it. Of four load balancers one has died, and one does not reach a cluster.
func frontEvidence(t *testing.T) Evidence {
	t.Helper()
	at := func(name, region string, lostFor time.Duration) *v1beta1.Cluster {
		c := clusterAt(name, lostFor)
		c.Status.Region = region
		return c
	}
	drained := at("east-b", "east", 0)
	drained.Spec.DNSWeight = new(int32)
	lost := at("east-c", "east", 5*time.Minute)
	lost.Status.Failover.Phase = v1beta1.PhaseFailedOver
	clusters := []*v1beta1.Cluster{at("east-a", "east", 0), drained, lost, at("west-a", "west", 0), at("west-b", "west", 0), at("west-c", "west", 0)}
	ingresses := &v1beta1.ServiceIngresses{}
	for i, c := range clusters[:5] {
		item := v1beta1.ClusterServiceIngress{Cluster: c.Name, Items: []corev1.LoadBalancerIngress{{IP: "192.0.2." + string(rune('1'+i))}}}
		if c.Name == "west-b" {
			item.Items = nil
		}
		ingresses.Items = append(ingresses.Items, item)
	}
	web := fromJSON(t, webService)
	setIngresses(t, &web.Object, ingresses)
	o, err := servicednsplan.Read(web, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &RoutesEvidence{Ingress: &networkingv1.Ingress{}, Missing: []string{"www"}, World: loadbalancerplan.World{Services: map[string]*corev1.Service{"shop/web": {}}}}
	r.Names = servicednsplan.Input{Federation: "fed", Zone: "example.com.", Explain: true, Offers: true, Objects: []servicednsplan.Object{o}}
	for _, c := range clusters {
		r.Names.Clusters = append(r.Names.Clusters, servicednsplan.ClusterOf(c, nil))
	}
	bank := &networkingv1.Ingress{}
	for text, into := range map[string]any{frontIngress: r.Ingress, bankIngress: bank, webService: r.World.Services["shop/web"]} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fromJSON(t, text).Object, into); err != nil {
			t.Fatal(err)
		}
	}
	r.World.Ingresses = []*networkingv1.Ingress{r.Ingress, bank}
	r.Balancers = loadbalancerplan.Registrations([]*coordinationv1.Lease{
		registeredLease("east-1", eastSays, "", time.Second), registeredLease("east-2", strings.Replace(eastSays, "80", "81", 1), `[{"cluster":"east-a","address":"192.0.2.1:80"}]`, time.Second),
		registeredLease("west-1", westSays, "", time.Second), registeredLease("west-2", strings.Replace(westSays, "90", "91", 1), "", time.Minute),
	}, map[string]string{"east-1": "", "east-2": "", "west-1": ""}, seenAt)
	e := evidenceOf(fromJSON(t, frontIngress), Ingresses, clusters...)
	e.Routes = r
	return e
}

func TestExplainAnIngress(t *testing.T) {
	e := frontEvidence(t)
	e.Routes.Unknown = nil
	goldenJSON(t, "testdata/ingress.json", Explain(e))
}

// TestExplainIngressesThatNobodyServes: of another class, and without a load balancer.
func TestExplainIngressesThatNobodyServes(t *testing.T) {
	e := frontEvidence(t)
	e.Routes.Ingress.Spec.IngressClassName = new("nginx")
	if x := Explain(e).Routes; !strings.Contains(x.NotServed, `its class is "nginx"`) || len(x.Routes)+len(x.Problems) > 0 {
		t.Errorf("of another class: %+v", x)
	}
	e = frontEvidence(t)
	e.Routes.Balancers = nil
	x := Explain(e).Routes
	if !strings.Contains(strings.Join(x.Problems, "\n"), "no load balancer of the federation is alive") || len(x.Pools) != 1 || len(x.Pools[0].From) != 1 {
		t.Errorf("without a load balancer: %+v", x)
	}
}

// TestExplainTLSThatIsPassedOn: where it goes, and that paths are not seen.
func TestExplainTLSThatIsPassedOn(t *testing.T) {
	e := frontEvidence(t)
	e.Routes.Unknown = nil
	e.Routes.Ingress.Annotations = map[string]string{v1beta1.SSLPassthroughAnnotation: "true"}
	x := Explain(e).Routes
	if len(x.Routes) != 1 || !x.Routes[0].Passthrough || x.Routes[0].Host != "www.example.com" || x.Routes[0].Secret != "" || x.Routes[0].Pool != "shop/web:80/TLS" {
		t.Errorf("routes %+v", x.Routes)
	}
	if len(x.Pools) != 1 || x.Pools[0].Protocol != "tls" || len(x.Pools[0].From[0].Targets) == 0 {
		t.Errorf("pools %+v", x.Pools)
	}
	if problems := strings.Join(x.Problems, "\n"); !strings.Contains(problems, `path "/old" is not served: TLS is passed on`) {
		t.Errorf("problems %s", problems)
	}
}

// TestExplainAddressesThatLeadBack: those of load balancers of the federation, and of the machine of one.
func TestExplainAddressesThatLeadBack(t *testing.T) {
	e := frontEvidence(t)
	e.Routes.Balancers = loadbalancerplan.Registrations([]*coordinationv1.Lease{
		registeredLease("east-1", strings.Replace(eastSays, "192.0.2.80", "192.0.2.1", 1), "", time.Second),
		registeredLease("west-1", westSays, `[{"cluster":"west-a","address":"192.0.2.4:80","own":true}]`, time.Second),
	}, map[string]string{"east-1": "", "west-1": ""}, seenAt)
	notes := map[string]string{}
	for _, from := range Explain(e).Routes.Pools[0].From {
		notes[strings.Join(from.LoadBalancers, " ")] = strings.Join(from.Notes, "\n")
		for _, target := range from.Targets {
			if target.Address == "192.0.2.1:80" {
				t.Errorf("%v use %+v", from.LoadBalancers, target)
			}
		}
	}
	const registered, machine = "east-a: address 192.0.2.1 is not used: it is that of the federation's load balancer east-1", "west-a: address 192.0.2.4 is not used: it is one of the load balancer's own machine"
	if !strings.Contains(notes["east-1"], registered) || strings.Contains(notes["east-1"], machine) || !strings.Contains(notes["west-1"], registered) || !strings.Contains(notes["west-1"], machine) {
		t.Errorf("notes %q", notes)
	}
}
