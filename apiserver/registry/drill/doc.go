// Package drill stores FailoverDrills. Their specs cannot be changed and their statuses are the controller's. A user
// who may update the subresource abort may end one; who may update approval may approve somebody else's.
package drill
