package plan

import "slices"

// replicasAtHome returns how many replicas an object had in clusters before they were failed over.
func (o *Object) replicasAtHome(clusters []string) (n int64) {
	placed := o.Home
	if placed == nil {
		placed = o.Placed
	}
	for _, c := range clusters {
		n += placed[c]
	}
	return n
}

// replicasIn returns how many replicas an object has in clusters.
func (o *Object) replicasIn(clusters []string) (n int64) {
	for _, name := range clusters {
		n += o.Placed[name]
	}
	return n
}

// replicasOutside returns how many replicas an object has in clusters outside the scope.
func (o *Object) replicasOutside(scope []string) (n int64) {
	for name, placed := range o.Placed {
		if o.Counts && !slices.Contains(scope, name) {
			n += placed
		}
	}
	return n
}

// notReady returns how many requested replicas are ready in no cluster.
func notReady(objects []Object) (n int64) {
	for i := range objects {
		n += max(0, objects[i].Asked-objects[i].Ready)
	}
	return n
}

// missingElsewhere returns how many replicas outside the scope are not ready, of those that objects have there now.
// Ready replicas in the scope cannot be seen.
func missingElsewhere(objects []Object, scope []string) (n int64) {
	for i := range objects {
		n += max(0, objects[i].replicasOutside(scope)-objects[i].Ready)
	}
	return n
}

// lostElsewhere returns how many replicas outside the scope are not ready, of so many that were there before and are
// still requested. Replicas placed there in place of the scope are not ready yet.
func lostElsewhere(objects []Object, scope []string, before int64) int64 {
	var elsewhere, ready int64
	for i := range objects {
		elsewhere += objects[i].replicasOutside(scope)
		ready += objects[i].Ready
	}
	return max(0, min(before, elsewhere)-ready)
}
