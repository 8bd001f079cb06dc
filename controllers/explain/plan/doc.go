// Package plan says where an object is, why, and what it waits for: in each cluster, in the EndpointSlices that clusters have of each other, and
// at the federation's load balancers; what names answer; and how the whole federation stands. It decides nothing of its own: it runs the
// functions by which the scheduler, propagation, DNS and load balancers decide, on what somebody has read, and words the outcome. Explain is the
// entry.
package plan
