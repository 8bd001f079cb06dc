package room

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// table has what is free on each node: a row a node, a column a resource.
type table struct {
	names []corev1.ResourceName
	rows  [][]int64
	sums  []float64 // of the columns, to weigh one resource against another
}

// classes divides the nodes on which a pod still fits into at most MaxClasses, largest first.
func classes(free map[string]Amounts) []v1beta1.NodeClass {
	t := newTable(free)
	groups := [][][]int64{t.rows}
	if len(t.rows) == 0 {
		return nil
	}
	for len(groups) < MaxClasses {
		worst, most := -1, 0.0
		for i, g := range groups {
			if _, loss := t.loss(g); loss > most {
				worst, most = i, loss
			}
		}
		if worst < 0 {
			break
		}
		a, b := t.split(groups[worst])
		groups[worst] = a
		groups = append(groups, b)
	}
	return t.list(groups)
}

func newTable(free map[string]Amounts) *table {
	t := &table{names: []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}}
	for _, a := range free {
		for name := range a {
			if !slices.Contains(t.names, name) {
				t.names = append(t.names, name)
			}
		}
	}
	slices.Sort(t.names[3:])
	t.sums = make([]float64, len(t.names))
	for _, a := range free {
		if a[corev1.ResourcePods] <= 0 {
			continue // nothing fits here any more
		}
		row := make([]int64, len(t.names))
		for i, name := range t.names {
			row[i] = max(a[name], 0)
			t.sums[i] += float64(row[i])
		}
		t.rows = append(t.rows, row)
	}
	slices.SortFunc(t.rows, slices.Compare) // maps have no order
	return t
}

// loss is how much of a group is not told by the least of it, as a share of all that is free, and the
// resource of which it is most.
func (t *table) loss(group [][]int64) (column int, share float64) {
	most := 0.0
	for i := range t.names {
		if t.sums[i] == 0 {
			continue
		}
		least, sum := group[0][i], 0.0
		for _, row := range group {
			least = min(least, row[i])
			sum += float64(row[i])
		}
		lost := (sum - float64(least)*float64(len(group))) / t.sums[i]
		if share += lost; lost > most {
			column, most = i, lost
		}
	}
	return column, share
}

// split cuts a group in two by the resource of which most is lost, where least of it is lost then.
func (t *table) split(group [][]int64) (a, b [][]int64) {
	column, _ := t.loss(group)
	group = slices.Clone(group)
	slices.SortStableFunc(group, func(x, y []int64) int { return cmp.Compare(y[column], x[column]) })
	at, best := 1, -1.0
	for i := 1; i < len(group); i++ {
		// Told then: of the first i nodes the least of them, of the others the least of all.
		gain := float64(i) * float64(group[i-1][column]-group[len(group)-1][column])
		if gain > best {
			at, best = i, gain
		}
	}
	return group[:at], group[at:]
}

func (t *table) list(groups [][][]int64) []v1beta1.NodeClass {
	type class struct {
		nodes int32
		least []int64
	}
	all := make([]class, 0, len(groups))
	for _, g := range groups {
		c := class{nodes: int32(len(g)), least: slices.Clone(g[0])}
		for _, row := range g {
			for i := range row {
				c.least[i] = min(c.least[i], row[i])
			}
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b class) int { return cmp.Or(slices.Compare(b.least, a.least), cmp.Compare(b.nodes, a.nodes)) })
	out := make([]v1beta1.NodeClass, len(all))
	for i, c := range all {
		amounts := Amounts{}
		for j, name := range t.names {
			if c.least[j] > 0 {
				amounts[name] = c.least[j]
			}
		}
		out[i] = v1beta1.NodeClass{Nodes: c.nodes, Free: amounts.List()}
	}
	return out
}
