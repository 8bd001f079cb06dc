package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/phrase"
	"federation/apiserver/client"
	loadbalancerplan "federation/controllers/loadbalancer/plan"
)

// balancerView is a load balancer of the federation, as -o json and yaml print it.
type balancerView struct {
	Name      string   `json:"name"`
	Region    string   `json:"region,omitempty"`
	Zone      string   `json:"zone,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	Alive     bool     `json:"alive"`
	// Published: DNS and Ingresses have its addresses.
	Published bool        `json:"published"`
	Renewed   metav1.Time `json:"renewed"`
	Problem   string      `json:"problem,omitempty"`
	// place is REGION/ZONE, as far as it is known.
	place string
}

// registrations reads how the federation's own load balancers have registered, by name.
func registrations(ctx context.Context, f *client.Federation) ([]loadbalancerplan.Registration, error) {
	found, err := f.Kube.CoordinationV1().Leases(v1beta1.LoadBalancersNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	written, err := f.Published(ctx, v1beta1.LoadBalancersConfigMap)
	if err != nil {
		return nil, err
	}
	var leases []*coordinationv1.Lease
	for i := range found.Items {
		leases = append(leases, &found.Items[i])
	}
	return loadbalancerplan.Registrations(leases, written, time.Now()), nil
}

// balancers returns the federation's own load balancers; none if the user may not read of them.
func balancers(ctx context.Context, f *client.Federation) ([]balancerView, error) {
	all, err := registrations(ctx, f)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return viewBalancers(all), err
}

func viewBalancers(all []loadbalancerplan.Registration) (views []balancerView) {
	for i := range all {
		b := &all[i]
		v := balancerView{Name: b.Name, Region: b.Region, Zone: b.Zone, Alive: b.Problem == "", Published: b.Published, Renewed: metav1.NewTime(b.Renewed), Problem: b.Problem, place: b.Place()}
		for _, a := range b.Addresses {
			v.Addresses = append(v.Addresses, a.String())
		}
		views = append(views, v)
	}
	return views
}

// printBalancers prints a table of at most `rows` load balancers; problems first if not all fit.
func printBalancers(out io.Writer, all []balancerView, rows int, now time.Time) {
	if len(all) == 0 {
		return
	}
	shown := slices.Clone(all)
	if len(shown) > rows {
		slices.SortStableFunc(shown, func(a, b balancerView) int { return cmp.Compare(len(b.Problem), len(a.Problem)) })
		shown = shown[:rows]
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	tell(w, "\nLOAD BALANCER\tPLACE\tADDRESSES\tALIVE\tRENEWED\tPROBLEM\n")
	for i := range shown {
		b := &shown[i]
		tell(w, "%s\t%s\t%s\t%s\t%s\t%s\n", b.Name, b.place, phrase.Some(b.Addresses), map[bool]string{true: "yes", false: "no"}[b.Alive], agoOrDash(&b.Renewed, now), b.Problem)
	}
	_ = w.Flush() // nobody reads the error
	if more := len(all) - len(shown); more > 0 {
		tell(out, "And %s more (--all shows them)\n", phrase.Count(int64(more), "load balancer"))
	}
}

// printBalancersAlive prints how many are alive, by place, and those that are not.
func printBalancersAlive(out io.Writer, all []balancerView, rows int) {
	if len(all) == 0 {
		return
	}
	alive, of := map[string]int{}, map[string]int{}
	var lost []string
	sum := 0
	for i := range all {
		b := &all[i]
		of[b.place]++
		if b.Alive {
			alive[b.place]++
			sum++
		} else {
			lost = append(lost, fmt.Sprintf("  %s (%s): %s\n", b.Name, b.place, b.Problem))
		}
	}
	var places []string
	for _, place := range slices.Sorted(maps.Keys(of)) {
		places = append(places, fmt.Sprintf("%s %d of %d", place, alive[place], of[place]))
	}
	tell(out, "\nLoad balancers: %d of %d alive (%s)\n%s", sum, len(all), phrase.Some(places), strings.Join(lost[:min(rows, len(lost))], ""))
	if more := len(lost) - rows; more > 0 {
		tell(out, "  and %d more that are not alive (--all shows them)\n", more)
	}
}
