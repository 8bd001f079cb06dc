package main

import (
	"io"
	"strings"
	"text/tabwriter"
	"time"

	explainplan "federation/controllers/explain/plan"
	"federation/dnsprovider"
)

// printDNS writes the list for people.
func printDNS(out io.Writer, view *explainplan.NamesView, now time.Time) {
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

func printName(out io.Writer, n explainplan.NameView) {
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
