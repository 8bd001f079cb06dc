// Package drill stores FailoverDrills. Their specs cannot be changed, their statuses are the controller's, and whoever may update the
// subresource abort may end one, who may update approval may approve one of somebody else.
package drill
