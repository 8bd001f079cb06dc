package batch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Zones finds the zone of a name, and caches its ID. It must not be copied.
type Zones struct {
	// Kind is what errors call a zone, and Where says where it should be: "hosted zone", "in the account".
	Kind, Where string
	// ID is the zone that is meant. Default: the only one that has the name.
	ID string
	// Named returns the zones of the name: by their IDs, what else tells them apart.
	Named func(ctx context.Context, name string) (map[string]string, error)

	known sync.Map // IDs by name
}

// Find returns the ID of the zone of that name. It fails when there is none or more than one, as of a public
// and a private zone of the same name.
func (z *Zones) Find(ctx context.Context, name string) (string, error) {
	if id, ok := z.known.Load(name); ok {
		return id.(string), nil
	}
	found, err := z.Named(ctx, name)
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(found, func(id, _ string) bool { return z.ID != "" && z.ID != id })
	ids := slices.Sorted(maps.Keys(found))
	if len(ids) != 1 {
		return "", z.notOne(ids, found)
	}
	z.known.Store(name, ids[0])
	return ids[0], nil
}

// Forget drops the cached ID after an error, which it returns: the zone may be another now.
func (z *Zones) Forget(name string, err error) error {
	if err != nil {
		z.known.Delete(name)
	}
	return err
}

// notOne returns the error for none or several zones.
func (z *Zones) notOne(ids []string, about map[string]string) error {
	if len(ids) == 0 && z.ID != "" {
		return fmt.Errorf("there is no %s %q of that name %s", z.Kind, z.ID, z.Where)
	}
	if len(ids) == 0 {
		return fmt.Errorf("there is no %s of that name %s", z.Kind, z.Where)
	}
	for i, id := range ids {
		ids[i] = id + " " + about[id]
	}
	return fmt.Errorf("there are %d %ss of that name %s (%s): say which one is meant", len(ids), z.Kind, z.Where, strings.Join(ids, ", "))
}
