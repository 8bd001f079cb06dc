// Package cluster stores Clusters and serves their subresources: status, and proxy, through which a
// client of the federation speaks to a member's API as itself.
package cluster
