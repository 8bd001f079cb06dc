package health

import (
	"cmp"
	"fmt"

	"federation/apiserver/apis/federation/v1beta1"
)

// DuplicateOf returns the name of the Cluster that is used in place of c, whose cluster has the UID uid: another Cluster that is the same
// cluster. "" if c is the one to use, or if its UID is not known.
//
// The Cluster that had the UID first is used, so that one whose address is changed to that of another takes nothing from it. Where
// neither was first, it is the older one.
func DuplicateOf(c *v1beta1.Cluster, uid string, clusters []*v1beta1.Cluster) (used string) {
	if uid == "" {
		return ""
	}
	var first *v1beta1.Cluster
	for _, other := range clusters {
		if other.Name != c.Name && other.Status.UID == uid && isUsedRather(other, c, uid) && (first == nil || isUsedRather(other, first, uid)) {
			first = other
		}
	}
	if first == nil {
		return ""
	}
	return first.Name
}

// isUsedRather reports whether a is used rather than b, where both are the cluster with the UID.
func isUsedRather(a, b *v1beta1.Cluster, uid string) bool {
	if a, b := isDuplicate(a), isDuplicate(b); a != b {
		return b
	}
	if a, b := a.Status.UID == uid, b.Status.UID == uid; a != b {
		return a
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

func isDuplicate(c *v1beta1.Cluster) bool {
	ready := c.Condition(v1beta1.ClusterReady)
	return ready != nil && ready.Reason == ReasonDuplicateCluster
}

// DuplicateEvidence is what is found of a Cluster that is not used, since another one is the same cluster.
func DuplicateEvidence(used, uid string) Evidence {
	return Evidence{Answer: Duplicate, Detail: fmt.Sprintf(
		"it is the same cluster as Cluster %s, which is used (UID %s): nothing is placed, written or deleted by this name; unjoin the one of them that is not wanted", used, uid)}
}
