// Package scheduler decides which clusters hold how many replicas of an object. It is one pure
// function of values, Plan, and returns with the numbers the reason for each.
//
// Replicas are divided by Sainte-Laguë's method (each further replica goes to the cluster with the
// greatest weight / (2·replicas + 1)) inside a lower and an upper bound per cluster. The method is
// monotone: one replica more moves no other, which rounding quotas up (Federation v1) or by largest
// remainder is not. Minimums, maximums, capacity and "rebalance" are nothing but bounds.
//
// The cost is O(clusters · log clusters), whatever the number of replicas.
package scheduler
