package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// NamesView is the output of dns, as -o json and yaml print it.
type NamesView struct {
	Federation string `json:"federation"`
	Zone       string `json:"zone"`
	// Providers are those that hold the zone; none if that is not published.
	Providers []v1beta1.DNSProvider `json:"providers,omitempty"`
	Objects   []ObjectNames         `json:"objects"`
}

// ObjectNames are the names of a Service or an Ingress.
type ObjectNames struct {
	Kind      string     `json:"kind"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Names     []NameView `json:"names,omitempty"`
	// Notes say what is missing or unexpected.
	Notes []NoteView `json:"notes,omitempty"`
}

// NameView is a name with what it answers.
type NameView struct {
	Name  string `json:"name"`
	Level string `json:"level"`
	// Answers are by type; none: the name has no data.
	Answers  []AnswerView   `json:"answers,omitempty"`
	Clusters []StandingView `json:"clusters"`
}

// AnswerView is a record set of a name.
type AnswerView struct {
	Type       string   `json:"type"`
	TTLSeconds uint32   `json:"ttlSeconds"`
	Data       []string `json:"data"`
	// OneOf are the answers from which a server that can choose gives one.
	OneOf []VariantView `json:"oneOf,omitempty"`
}

// VariantView is one of the answers of a record set that servers choose from.
type VariantView struct {
	Weight uint32   `json:"weight,omitempty"`
	Region string   `json:"region,omitempty"`
	Data   []string `json:"data"`
}

// StandingView says whether a cluster's addresses are given out, and why.
type StandingView struct {
	Name  string `json:"name"`
	Given bool   `json:"given"`
	Why   string `json:"why"`
}

// NoteView says what is missing or unexpected, of a cluster or of the whole object.
type NoteView struct {
	Cluster string `json:"cluster,omitempty"`
	Message string `json:"message"`
}

// ViewNames arranges a plan by object. It is pure.
func ViewNames(in servicednsplan.Input, p servicednsplan.Plan, shown func(servicednsplan.Object) bool) *NamesView {
	view := &NamesView{Federation: in.Federation, Zone: in.Zone, Objects: []ObjectNames{}}
	for _, o := range in.Objects {
		if !shown(o) {
			continue
		}
		one := ObjectNames{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		for _, n := range p.Names {
			if n.Object == o.Key() {
				one.Names = append(one.Names, viewName(n))
			}
		}
		for _, r := range p.Reasons {
			if r.Object == o.Key() {
				one.Notes = append(one.Notes, NoteView{r.Cluster, r.Message})
			}
		}
		if len(one.Names)+len(one.Notes) > 0 {
			view.Objects = append(view.Objects, one)
		}
	}
	return view
}

func viewName(n servicednsplan.Name) NameView {
	name := NameView{Name: n.Name, Level: string(n.Level)}
	for _, set := range n.Records {
		name.Answers = append(name.Answers, viewSet(set))
	}
	for _, c := range n.Clusters {
		name.Clusters = append(name.Clusters, StandingView{c.Cluster, c.Given, c.Why})
	}
	return name
}

func viewSet(set dnsprovider.RRSet) AnswerView {
	a := AnswerView{Type: string(set.Type), TTLSeconds: set.TTL, Data: set.Rdata}
	for _, v := range set.Variants {
		a.OneOf = append(a.OneOf, VariantView{v.Weight, v.Region, v.Rdata})
	}
	return a
}

// WhyNoNames returns why a Service or an Ingress has neither a name in the zone nor a note about one.
func WhyNoNames(u *unstructured.Unstructured, zone string) string {
	if kind, _, _ := unstructured.NestedString(u.Object, "spec", "type"); u.GetKind() == servicednsplan.KindService && kind != string(corev1.ServiceTypeLoadBalancer) {
		return "it is of type " + kind + ", and only Services of type LoadBalancer have names"
	}
	if u.GetKind() == servicednsplan.KindIngress {
		hosts := servicednsplan.Hosts(u)
		if len(hosts) == 0 {
			return "its rules have no host"
		}
		if !slices.ContainsFunc(hosts, func(host string) bool {
			name, err := dnsprovider.CanonicalName(host)
			return err == nil && dnsprovider.InZone(name, zone)
		}) {
			return "the zone is " + zone + ", and its hosts are not in there: " + strings.Join(hosts, ", ")
		}
	}
	return "no cluster has a load balancer for it yet"
}
