// Package plan says what the federation does to federated objects on their way in: which marks a new one gets, whether it waits for its
// placement, and what a delete leaves in the members. It gets the policies of the object's namespace, and asks nobody.
package plan
