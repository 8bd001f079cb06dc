// Package plan says where an object is, why, and what it waits for: in each cluster, in what clusters are told of each other's Services, and
// at the federation's load balancers; and what names answer. It decides nothing of its own: it runs the functions by which the scheduler,
// propagation, DNS and load balancers decide, on what somebody has read, and words the outcome. Explain is the entry.
package plan
