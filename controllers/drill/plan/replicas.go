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

func (d *drill) placedIn(o *Object) (n int64) {
	for _, name := range d.step.Status.Clusters {
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
func (d *drill) notReady() (n int64) {
	for i := range d.Objects {
		n += max(0, d.Objects[i].Asked-d.Objects[i].Ready)
	}
	return n
}

// missingElsewhere returns how many replicas outside the scope are not ready, of those that objects have there now.
// Ready replicas in the scope cannot be seen.
func (d *drill) missingElsewhere() (n int64) {
	for i := range d.Objects {
		n += max(0, d.Objects[i].replicasOutside(d.step.Status.Clusters)-d.Objects[i].Ready)
	}
	return n
}

// lostElsewhere returns how many replicas outside the scope are not ready, of those that were there before and are
// still requested. Replicas placed there in place of the scope are not ready yet.
func (d *drill) lostElsewhere() int64 {
	var elsewhere, ready int64
	for i := range d.Objects {
		elsewhere += d.Objects[i].replicasOutside(d.step.Status.Clusters)
		ready += d.Objects[i].Ready
	}
	return max(0, min(d.step.Status.Report.Workloads.Elsewhere, elsewhere)-ready)
}
