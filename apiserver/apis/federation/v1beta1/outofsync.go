package v1beta1

import "encoding/json"

const (
	// maxOutOfSync is how many clusters an OutOfSync has at most, and maxOutOfSyncBytes how long it is.
	maxOutOfSync      = 10
	maxOutOfSyncBytes = 4096
)

// OutOfSync are the clusters in which a federated object is not as desired. One that cannot be reached is not among them: its Cluster says that.
type OutOfSync struct {
	// Clusters are some of them, sorted by name, at most 10.
	Clusters []ClusterOutOfSync `json:"clusters"`
	// More is how many there are besides.
	More int `json:"more,omitempty"`
}

// ClusterOutOfSync is a cluster in which an object is not as desired.
type ClusterOutOfSync struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
	// Reason is Rejected, Conflict, Progressing or Pending, as in the condition Propagated.
	Reason string `json:"reason"`
	// Message says why, at most MaxText bytes.
	Message string `json:"message,omitempty"`
}

// NewOutOfSync returns as many of the clusters as fit; nil if there are none.
func NewOutOfSync(all []ClusterOutOfSync) *OutOfSync {
	if len(all) == 0 {
		return nil
	}
	o, size := &OutOfSync{Clusters: []ClusterOutOfSync{}}, 0
	for _, one := range all {
		one.Message = Printable(one.Message)
		if size += len(asJSON(one)); len(o.Clusters) == maxOutOfSync || size > maxOutOfSyncBytes {
			break
		}
		o.Clusters = append(o.Clusters, one)
	}
	o.More = len(all) - len(o.Clusters)
	return o
}

// String returns the clusters as the annotation has them; "" for none.
func (o *OutOfSync) String() string {
	if o == nil {
		return ""
	}
	return asJSON(o)
}

// ParseOutOfSync reads OutOfSyncAnnotation; nil if there is none, or it cannot be read.
func ParseOutOfSync(value string) *OutOfSync {
	o := &OutOfSync{}
	if value == "" || json.Unmarshal([]byte(value), o) != nil {
		return nil
	}
	return o
}

// In returns what is said of a cluster; nil if nothing is.
func (o *OutOfSync) In(cluster string) *ClusterOutOfSync {
	if o == nil {
		return nil
	}
	for i := range o.Clusters {
		if o.Clusters[i].Cluster == cluster {
			return &o.Clusters[i]
		}
	}
	return nil
}
