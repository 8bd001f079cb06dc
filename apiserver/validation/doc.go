// Package validation tells what is wrong with objects of the federation API: all faults at once, each
// with the path to its field.
//
// It is pure: values in, field.ErrorList out. Kubernetes' own kinds are checked by Kubernetes' own
// validation; here are our kinds, and the annotations by which users steer the federation.
package validation
