package shards

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"federation/apiserver/apis/resourceversion"
	"federation/controllers/shards/plan"
)

// Leases are those of the federation's namespace.
type Leases interface {
	List(context.Context, metav1.ListOptions) (*coordinationv1.LeaseList, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(context.Context, *coordinationv1.Lease, metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(context.Context, *coordinationv1.Lease, metav1.UpdateOptions) (*coordinationv1.Lease, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*coordinationv1.Lease, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

const (
	// TableName is the name of the Lease with the table.
	TableName = "federation-shards"
	// TableAnnotation holds the table: JSON, for each replica its shards.
	TableAnnotation = "federation.kubernetes.io/shards"
	// label is on all Leases of this package: "table" or "replica".
	label = "federation.kubernetes.io/shards"
)

// newInformer caches all Leases of this package.
func newInformer(leases Leases) cache.SharedIndexInformer {
	only := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = label
		return o
	}
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return leases.List(ctx, only(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return leases.Watch(ctx, only(o))
		},
	}, leases), &coordinationv1.Lease{}, 0, cache.Indexers{})
}

// newReplica returns the Lease of a replica, with its annotations.
func newReplica(name string, t Timing, says map[string]string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "replica"}, Annotations: says},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &name, LeaseDurationSeconds: new(int32(t.Duration / time.Second)), RenewTime: new(metav1.NowMicro()),
		},
	}
}

func renewPatch(says map[string]string) []byte {
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": says}, "spec": map[string]any{"renewTime": metav1.NowMicro()}}) // never fails
	return patch
}

// tableOf parses the table in a Lease.
func tableOf(lease *coordinationv1.Lease) (plan.Table, error) {
	if lease == nil {
		return plan.Table{}, nil
	}
	t, err := plan.ParseTable(lease.Annotations[TableAnnotation])
	if err != nil {
		return t, fmt.Errorf("the table of shards cannot be read: annotation %s of the Lease %s: %w; delete the Lease, and it is created again", TableAnnotation, TableName, err)
	}
	return t, nil
}

// lastTable is the table that was parsed last: there is a turn at each renewal of any replica, and few change the table.
type lastTable struct {
	of    *coordinationv1.Lease
	table plan.Table
}

// tableOf parses the table in a Lease, unless it did so the last time. The Lease must not be changed.
func (l *lastTable) tableOf(lease *coordinationv1.Lease) (plan.Table, error) {
	if lease != nil && lease == l.of {
		return l.table, nil
	}
	table, err := tableOf(lease)
	if err == nil {
		l.of, l.table = lease, table
	}
	return table, err
}

// writeTable writes the table at the version of was. It returns a conflict if that version is gone.
func writeTable(ctx context.Context, leases Leases, was *coordinationv1.Lease, t plan.Table) (*coordinationv1.Lease, error) {
	if was == nil {
		return leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: TableName, Labels: map[string]string{label: "table"}, Annotations: map[string]string{TableAnnotation: t.String()},
		}}, metav1.CreateOptions{})
	}
	lease := was.DeepCopy()
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[TableAnnotation] = t.String()
	return leases.Update(ctx, lease, metav1.UpdateOptions{})
}

// readTable reads the table from the API, past any cache; nil if there is none.
func readTable(ctx context.Context, leases Leases) (*coordinationv1.Lease, error) {
	lease, err := leases.Get(ctx, TableName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return lease, err
}

// newerVersion returns the later of two versions of one object; nil is the oldest.
func newerVersion(a, b *coordinationv1.Lease) *coordinationv1.Lease {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	if resourceversion.Of(a) > resourceversion.Of(b) {
		return a
	}
	return b
}
