package plan

import (
	"maps"
	"slices"

	"federation/apiserver/apis/federation/v1beta1"
	servicednsplan "federation/controllers/servicedns/plan"
)

// namesLost counts the global names and hosts that the clusters serve now, and returns those that nobody would serve
// then.
func (f *Fleet) namesLost(in *Input, then []*v1beta1.Cluster, lost []string) (served int, gone []string) {
	if f.zone == "" {
		return 0, nil
	}
	keys := map[string]bool{}
	for _, c := range lost {
		maps.Copy(keys, f.namedAt[c])
	}
	if len(keys) == 0 {
		return 0, nil
	}
	before, after := byName(in.servedClusters(in.Clusters)), byName(in.servedClusters(then))
	for key := range keys {
		was, is := f.serversOf(f.named[key], before), f.serversOf(f.named[key], after)
		for name, by := range was {
			if !slices.ContainsFunc(by, func(c string) bool { return slices.Contains(lost, c) }) {
				continue
			}
			if served++; len(is[name]) == 0 {
				gone = append(gone, name)
			}
		}
	}
	slices.Sort(gone)
	return served, gone
}

func byName(clusters []servicednsplan.Cluster) map[string]servicednsplan.Cluster {
	out := make(map[string]servicednsplan.Cluster, len(clusters))
	for _, c := range clusters {
		out[c.Name] = c
	}
	return out
}

// isServing reports whether the cluster is known to serve.
func isServing(c servicednsplan.Cluster) bool { return c.CutOff || c.Ready && !c.HeartbeatsStale }

// serversOf returns the clusters that serve each global name and host of an object. A cluster that cannot be seen serves
// nothing, though its addresses may stay in DNS for lack of others.
func (f *Fleet) serversOf(o *servicednsplan.Object, clusters map[string]servicednsplan.Cluster) map[string][]string {
	in := servicednsplan.Input{Federation: f.info.Name, Zone: f.zone, TTL: 1, Objects: []servicednsplan.Object{*o}, Claims: f.claims, Explain: true, Refuse: addressFilter(&f.info)}
	for _, item := range o.Ingresses.Items {
		if c, joined := clusters[item.Cluster]; joined { // only names that are not asked for here depend on other clusters' places
			in.Clusters = append(in.Clusters, c)
		}
	}
	out := map[string][]string{}
	for _, n := range servicednsplan.Records(in).Names {
		if n.Level != servicednsplan.LevelGlobal && n.Level != servicednsplan.LevelHost {
			continue
		}
		for _, s := range n.Clusters {
			if s.Given && isServing(clusters[s.Cluster]) {
				out[n.Name] = append(out[n.Name], s.Cluster)
			}
		}
	}
	return out
}
