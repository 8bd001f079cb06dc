package views

import "strings"

// nameAt is the name at the federation of what has that name in a cluster.
func nameAt(name, cluster string) string { return name + "." + cluster }

// splitName splits NAME.CLUSTER. Without the name of a known cluster at its end it is a bare name, and cluster is "".
func splitName(name string, clusters map[string]bool) (bare, cluster string) {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && clusters[name[dot+1:]] {
		return name[:dot], name[dot+1:]
	}
	return name, ""
}
