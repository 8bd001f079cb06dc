package views

import "strings"

// nameAt returns the federation's name of an object in a cluster.
func nameAt(name, cluster string) string { return name + "." + cluster }

// splitName splits NAME.CLUSTER. A name that does not end with a known cluster is a bare name, and cluster is "".
func splitName(name string, clusters map[string]bool) (bare, cluster string) {
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && clusters[name[dot+1:]] {
		return name[:dot], name[dot+1:]
	}
	return name, ""
}
