package main

import (
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/servicedns/plan"
	"federation/dnsprovider"
)

// dnsView is the output of dns, as -o json and yaml print it.
type dnsView struct {
	Federation string `json:"federation"`
	Zone       string `json:"zone"`
	// Providers are those that hold the zone; none if that is not published.
	Providers []v1beta1.DNSProvider `json:"providers,omitempty"`
	Objects   []dnsObject           `json:"objects"`
}

type dnsObject struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Names     []dnsName `json:"names,omitempty"`
	// Notes say what is missing or unexpected.
	Notes []dnsNote `json:"notes,omitempty"`
}

type dnsName struct {
	Name  string `json:"name"`
	Level string `json:"level"`
	// Answers are by type; none: the name has no data.
	Answers  []dnsAnswer   `json:"answers,omitempty"`
	Clusters []dnsStanding `json:"clusters"`
}

type dnsAnswer struct {
	Type       string   `json:"type"`
	TTLSeconds uint32   `json:"ttlSeconds"`
	Data       []string `json:"data"`
	// OneOf are the answers from which a server that can choose gives one.
	OneOf []dnsVariant `json:"oneOf,omitempty"`
}

type dnsVariant struct {
	Weight uint32   `json:"weight,omitempty"`
	Region string   `json:"region,omitempty"`
	Data   []string `json:"data"`
}

type dnsStanding struct {
	Name  string `json:"name"`
	Given bool   `json:"given"`
	Why   string `json:"why"`
}

type dnsNote struct {
	Cluster string `json:"cluster,omitempty"`
	Message string `json:"message"`
}

// viewDNS arranges a plan by object. It is pure.
func viewDNS(in plan.Input, p plan.Plan, shown func(plan.Object) bool) *dnsView {
	view := &dnsView{Federation: in.Federation, Zone: in.Zone, Objects: []dnsObject{}}
	for _, o := range in.Objects {
		if !shown(o) {
			continue
		}
		one := dnsObject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		for _, n := range p.Names {
			if n.Object == o.Key() {
				one.Names = append(one.Names, viewName(n))
			}
		}
		for _, r := range p.Reasons {
			if r.Object == o.Key() {
				one.Notes = append(one.Notes, dnsNote{r.Cluster, r.Message})
			}
		}
		if len(one.Names)+len(one.Notes) > 0 {
			view.Objects = append(view.Objects, one)
		}
	}
	return view
}

func viewName(n plan.Name) dnsName {
	name := dnsName{Name: n.Name, Level: string(n.Level)}
	for _, set := range n.Records {
		name.Answers = append(name.Answers, viewSet(set))
	}
	for _, c := range n.Clusters {
		name.Clusters = append(name.Clusters, dnsStanding{c.Cluster, c.Given, c.Why})
	}
	return name
}

func viewSet(set dnsprovider.RRSet) dnsAnswer {
	a := dnsAnswer{Type: string(set.Type), TTLSeconds: set.TTL, Data: set.Rdata}
	for _, v := range set.Variants {
		a.OneOf = append(a.OneOf, dnsVariant{v.Weight, v.Region, v.Rdata})
	}
	return a
}

// printDNS writes the list for people.
func printDNS(out io.Writer, view *dnsView, now time.Time) {
	tell(out, "Zone %s of federation %s\n", view.Zone, view.Federation)
	printProviders(out, view.Providers, now)
	if len(view.Objects) == 0 {
		tell(out, "\nNo object here has a name. -A looks in all namespaces.\n")
	}
	for _, o := range view.Objects {
		tell(out, "\n%s\n", objectName(o.Kind, o.Namespace, o.Name))
		for _, n := range o.Names {
			printName(out, n)
		}
		for _, note := range o.Notes {
			if note.Cluster == "" {
				tell(out, "  note: %s\n", note.Message)
			}
		}
	}
}

func printName(out io.Writer, n dnsName) {
	tell(out, "  %s (%s)\n", n.Name, n.Level)
	for _, a := range n.Answers {
		tell(out, "    %d %s %s\n", a.TTLSeconds, a.Type, strings.Join(a.Data, " "))
		for _, v := range a.OneOf {
			tell(out, "      one of: %s\n", dnsprovider.Variant{Rdata: v.Data, Weight: v.Weight, Region: v.Region})
		}
	}
	if len(n.Answers) == 0 {
		tell(out, "    answers nothing\n")
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range n.Clusters {
		mark := " "
		if c.Given {
			mark = "*"
		}
		tell(w, "    %s %s\t%s\n", mark, c.Name, c.Why)
	}
	_ = w.Flush() // nobody reads the error
}
