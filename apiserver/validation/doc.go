// Package validation validates objects of the federation API: it returns all errors at once, each with the path of its field.
//
// It is pure: values in, field.ErrorList out. Kubernetes' own validation checks its kinds; here are our kinds, and the
// annotations by which users steer the federation.
package validation
