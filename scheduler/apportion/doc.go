// Package apportion divides the replicas of an object among clusters. Plan is a pure function of values. It
// returns the numbers and the reason for each.
//
// Replicas are divided by Sainte-Laguë's method (each further replica goes to the cluster with the greatest
// weight / (2·replicas + 1)) within a lower and an upper bound per cluster. The method is monotone: one more replica
// moves no other. Rounding up quotas (Federation v1) and the largest remainder are not monotone. Minimums, maximums,
// capacity and "rebalance" are only bounds.
//
// The cost is O(clusters · log clusters), independent of the number of replicas.
package apportion
