package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/apis/federation/v1beta1"
	crossclusterplan "federation/controllers/crosscluster/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// explainAcross compares the present slices with the desired ones. It is pure.
func explainAcross(e Evidence, clusters []v1beta1.ClusterExplanation) *v1beta1.CrossClusterExplanation {
	a, p := e.Across, servicednsplan.Records(e.Across.World)
	x := &v1beta1.CrossClusterExplanation{Disabled: a.Off}
	if a.Unknown != nil {
		x.Unknown = a.Unknown.Error()
	}
	offers, untold := p.Offers, notOffered
	why, whole := clusterStandings(p)
	if IsOfferedByPods(e.Object) {
		offers, why, untold = a.offersOfPods(), map[string]string{}, a.notToldOfPods
		for _, o := range offers {
			why[o.Cluster] = podStanding(o)
		}
		whole = a.whyNoPods(e.Object, offers)
	} else if kind, _, _ := unstructured.NestedString(e.Object.Object, "spec", "type"); kind != string(corev1.ServiceTypeLoadBalancer) {
		whole = "a Service of type " + kind + " has no endpoints for other clusters"
	}
	for i := range clusters {
		x.Slices = append(x.Slices, a.clusterSlices(e, &clusters[i], offers, why)...)
	}
	for i := range clusters {
		if clusters[i].Desired == 0 || a.Off || a.Unknown != nil || whole != "" {
			continue
		}
		if reason := untold(clusters[i].Name, offers, why); reason != "" {
			x.Untold = append(x.Untold, v1beta1.UntoldCluster{Cluster: clusters[i].Name, Why: reason})
		}
	}
	if whole != "" && !a.Off {
		x.Untold = append(x.Untold, v1beta1.UntoldCluster{Why: whole})
	}
	return x
}

// notOffered returns why others are not told of a cluster's load balancers; "" where they are.
func notOffered(cluster string, offers []servicednsplan.Offer, why map[string]string) string {
	if slices.ContainsFunc(offers, func(o servicednsplan.Offer) bool { return o.Cluster == cluster }) {
		return ""
	}
	return cmp.Or(why[cluster], "it has no load balancer yet")
}

// clusterStandings returns the clusters' standings, by name, and why the whole Service has none.
func clusterStandings(p servicednsplan.Plan) (why map[string]string, whole string) {
	why = map[string]string{}
	for _, n := range p.Names {
		for _, c := range n.Clusters {
			if n.Level == servicednsplan.LevelGlobal {
				why[c.Cluster] = c.Why
			}
		}
	}
	for _, r := range p.Reasons {
		if r.Cluster == "" && len(p.Names) == 0 {
			whole = r.Message
		}
	}
	return why, whole
}

// clusterSlices returns the present and the desired slices of one cluster. why has reasons by cluster.
func (a *AcrossEvidence) clusterSlices(e Evidence, c *v1beta1.ClusterExplanation, offers []servicednsplan.Offer, why map[string]string) (all []v1beta1.SliceExplanation) {
	answer, in := a.Slices[c.Name], crossclusterplan.Input{Member: c.Name, Federation: e.UID, Offers: offers}
	if answer.Err != nil {
		if c.Desired > 0 {
			all = append(all, v1beta1.SliceExplanation{Cluster: c.Name, State: v1beta1.CopyUnreadable, Why: v1beta1.Printable(answer.Err.Error())})
			if c.Copy == v1beta1.CopyUnreachable {
				all[0].State, all[0].Why = v1beta1.CopyUnreachable, "it keeps the endpoints that it has"
			}
		}
		return all
	}
	in.Have, in.Endpoints = answer.Slices, a.endpoints()
	if u := e.Copies[c.Name].Copy; u != nil && isOurCopy(u, e.UID) && !a.Off {
		in.Service = &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, in.Service); err != nil {
			return []v1beta1.SliceExplanation{{Cluster: c.Name, State: v1beta1.CopyUnreadable, Why: v1beta1.Printable(err.Error())}}
		}
	}
	operations := crossclusterplan.Operate(in)
	if a.Unknown != nil {
		operations = nil
	}
	for _, s := range in.Have {
		all = append(all, viewSlice(c.Name, s, v1beta1.CopyInSync))
	}
	for _, op := range operations {
		i := slices.IndexFunc(all, func(v v1beta1.SliceExplanation) bool { return v.Name == op.Slice.Name })
		switch op.Verb {
		case crossclusterplan.Create:
			all = append(all, viewSlice(c.Name, op.Slice, v1beta1.CopyMissing))
		case crossclusterplan.Update:
			all[i].State = v1beta1.CopyBehind
		case crossclusterplan.Delete:
			all[i].State = v1beta1.CopyLeaving
		}
	}
	for i := range all {
		all[i].Why = a.waitReason(&all[i], why)
	}
	slices.SortFunc(all, func(x, y v1beta1.SliceExplanation) int { return strings.Compare(x.Name, y.Name) })
	return all
}

func viewSlice(cluster string, s *discoveryv1.EndpointSlice, state v1beta1.CopyState) v1beta1.SliceExplanation {
	v := v1beta1.SliceExplanation{Cluster: cluster, Source: s.Labels[v1beta1.SourceClusterLabel], Name: s.Name, State: state}
	v.Weight, _ = strconv.Atoi(s.Annotations[v1beta1.WeightAnnotation])
	for _, e := range s.Endpoints {
		v.Addresses = append(v.Addresses, e.Addresses...)
		v.Ready = v.Ready || e.Conditions.Ready != nil && *e.Conditions.Ready
	}
	return v
}

// waitReason returns what a slice waits for, or why none of it is ready.
func (a *AcrossEvidence) waitReason(v *v1beta1.SliceExplanation, of map[string]string) string {
	switch v.State {
	case v1beta1.CopyInSync:
		if v.Ready {
			return ""
		}
		return of[v.Source]
	case v1beta1.CopyLeaving:
		return "to be taken away"
	}
	for _, event := range a.Events {
		_, why, ofThis := strings.Cut(event.Message, strconv.Quote(v.Name)+": ")
		if event.Reason == v1beta1.EventSliceRejected && ofThis && strings.HasPrefix(event.Message, v.Cluster+": ") {
			return why
		}
		if event.Reason == v1beta1.EventMissingPermissions && event.InvolvedObject.Name == v.Cluster && strings.Contains(event.Message, Slices.Resource) {
			return event.Message
		}
	}
	if v.State == v1beta1.CopyBehind && len(a.World.Resolved) > 0 {
		return "to be written, as its host names are looked up from here"
	}
	return "to be written"
}
