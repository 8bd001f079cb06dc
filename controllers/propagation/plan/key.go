package plan

import "k8s.io/apimachinery/pkg/types"

// Key identifies a federated object and its copies.
type Key struct {
	Kind *Kind
	types.NamespacedName
}

func (k Key) String() string { return k.Kind.Kind + " " + k.NamespacedName.String() }

// StoreKey returns the object's key in an informer's store.
func (k Key) StoreKey() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.NamespacedName.String()
}
