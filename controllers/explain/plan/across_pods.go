package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	crossclusterplan "federation/controllers/crosscluster/plan"
	servicednsplan "federation/controllers/servicedns/plan"
)

// IsOfferedByPods reports whether clusters offer each other the pods of an object: a Service without load balancers.
func IsOfferedByPods(u *unstructured.Unstructured) bool {
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
	o := servicednsplan.Object{Kind: u.GetKind(), Type: corev1.ServiceType(kind)}
	return o.IsServedByPods()
}

// offersOfPods returns what clusters offer of the Service; nothing where that could not be read.
func (a *AcrossEvidence) offersOfPods() []servicednsplan.Offer {
	if len(a.World.Objects) == 0 {
		return nil
	}
	return servicednsplan.OffersOfPods(a.World.Clusters, a.World.Objects[0].Settings)
}

// endpoints returns what the clusters that answered have of the Service.
func (a *AcrossEvidence) endpoints() map[string]crossclusterplan.Endpoints {
	all := map[string]crossclusterplan.Endpoints{}
	for cluster, answer := range a.Slices {
		if answer.Err == nil {
			all[cluster] = crossclusterplan.EndpointsOf(answer.Own, answer.Balancers)
		}
	}
	return all
}

// podStanding returns why a cluster's pods are not used while those of another one can be; "" if they are.
func podStanding(o servicednsplan.Offer) string {
	switch {
	case o.Rank >= servicednsplan.RankUnseen:
		return "the cluster is not ready, or its nodes have not been heard of since it returned"
	case o.Weight == 0:
		return "the cluster's DNS weight is 0"
	case o.Rank > 0:
		return "the cluster is failed over, and its pods move"
	}
	return ""
}

// whyNoPods returns why no cluster gets pods of the Service; "" if some may.
func (a *AcrossEvidence) whyNoPods(service *unstructured.Unstructured, offers []servicednsplan.Offer) string {
	if ip, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP"); ip == corev1.ClusterIPNone {
		return "a headless Service has no address that could lead to other clusters"
	}
	for _, o := range offers {
		if a.isReached(o.Cluster, offers) {
			return ""
		}
	}
	if len(offers) == 0 {
		return ""
	}
	return "no two clusters are in one network (spec.network of Clusters), and the Service is not exported"
}

// notToldOfPods returns why others have none of a cluster's pods; "" where they have, or it is not known.
func (a *AcrossEvidence) notToldOfPods(cluster string, offers []servicednsplan.Offer, _ map[string]string) string {
	e, known := a.endpoints()[cluster]
	switch {
	case !known:
		return ""
	case !a.isReached(cluster, offers):
		return "no other cluster is in the network of its pods (spec.network of the Cluster), and the Service is not exported there"
	case len(e.Ready) == 0:
		return "none of its endpoints is ready"
	}
	return ""
}

// isReached reports whether a cluster has something that other clusters could use: pods in their network, or what was made for the exported Service.
func (a *AcrossEvidence) isReached(cluster string, offers []servicednsplan.Offer) bool {
	network := ""
	for _, o := range offers {
		if o.Cluster == cluster {
			network = o.Network
		}
	}
	for _, o := range offers {
		if network != "" && o.Network == network && o.Cluster != cluster {
			return true
		}
	}
	return len(a.Slices[cluster].Balancers) > 0
}
