// Package plan says which custom kinds are federated, and what they are served as.
package plan
