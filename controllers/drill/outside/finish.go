package outside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/drill/plan"
)

const (
	// leaderLease is the Lease of the process that decides, where there are several; one that was renewed this lately is somebody's.
	leaderLease   = "federation-controllers"
	leaderRenewed = time.Minute
	// actsWithin is how soon a process that decides acts on an abort.
	actsWithin = 10 * time.Second
)

// Finish takes a drill that was aborted to its end, by the steps that the federation would take, and in the same order.
func Finish(ctx context.Context, f *client.Federation, say func(format string, args ...any), name string) error {
	if err := nobodyLeads(ctx, f); err != nil {
		return err
	}
	if acts, err := somebodyActs(ctx, f, name); err != nil || acts {
		say("the federation undoes it itself: kubectl federation drill status %s --watch", name)
		return err
	}
	phase := v1beta1.DrillPhase("")
	for {
		d, err := client.Read[v1beta1.FailoverDrill](ctx, f.Dynamic.Resource(v1beta1.FailoverDrillsResource), name)
		if err != nil {
			return err
		}
		if d.Status.Phase != phase {
			phase = d.Status.Phase
			say("%s", phase)
		}
		w, err := ReadWorld(ctx, f)
		if err != nil {
			return err
		}
		w.Review, w.Problem = nil, "it is being ended"
		step := plan.Next(d, w)
		if err := takeStep(ctx, f, d, &step); err != nil && !apierrors.IsConflict(err) {
			return err
		}
		if d.IsFinished() && len(step.Changes) == 0 && len(step.Marks) == 0 {
			say("failoverdrill/%s: %s, %s: %s", name, d.Status.Outcome, d.Status.Reason, d.Status.Message)
			return nil
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("failoverdrill/%s is not undone in whole: drill abort %s --force goes on", name, name)
		}
	}
}

// nobodyLeads is an error where a process of the federation decides, or has done so until just now.
func nobodyLeads(ctx context.Context, f *client.Federation) error {
	lease, err := f.Kube.CoordinationV1().Leases(v1beta1.FederationNamespace).Get(ctx, leaderLease, metav1.GetOptions{})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if renewed := lease.Spec.RenewTime; renewed != nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" && time.Since(renewed.Time) < leaderRenewed {
		return fmt.Errorf("the federation's process %s decides, it was there %s ago: it undoes the drill itself (--force is for when none has been for %s)",
			*lease.Spec.HolderIdentity, time.Since(renewed.Time).Round(time.Second), leaderRenewed)
	}
	return nil
}

// somebodyActs waits a while for the federation to act on the abort of a drill, and reports whether it does.
func somebodyActs(ctx context.Context, f *client.Federation, name string) (bool, error) {
	first, err := client.Read[v1beta1.FailoverDrill](ctx, f.Dynamic.Resource(v1beta1.FailoverDrillsResource), name)
	for end := time.Now().Add(actsWithin); err == nil && time.Now().Before(end); {
		if err = pause(ctx); err != nil {
			break
		}
		is, getErr := client.Read[v1beta1.FailoverDrill](ctx, f.Dynamic.Resource(v1beta1.FailoverDrillsResource), name)
		if err = getErr; err == nil && (is.IsFinished() || is.Status.Phase != first.Status.Phase) {
			return true, nil
		}
	}
	return false, err
}

// takeStep does what a step says: its status first, as the federation does. A drill that is not deleted keeps its finalizer, for the federation to note it.
func takeStep(ctx context.Context, f *client.Federation, d *v1beta1.FailoverDrill, step *plan.Step) error {
	drills := f.Dynamic.Resource(v1beta1.FailoverDrillsResource)
	if !reflect.DeepEqual(step.Status, d.Status) {
		next := d.DeepCopy()
		next.Status = step.Status
		u, err := plan.Unstructured(next, "FailoverDrill")
		if err != nil {
			return err
		}
		if _, err := drills.UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: plan.FieldManager}); err != nil {
			return err
		}
	}
	var errs []error
	for _, c := range step.Changes {
		u, err := plan.Unstructured(c, "Cluster")
		if err == nil {
			_, err = f.Dynamic.Resource(v1beta1.ClustersResource).Update(ctx, u, metav1.UpdateOptions{FieldManager: plan.FieldManager})
		}
		errs = append(errs, err)
	}
	for _, m := range step.Marks {
		errs = append(errs, writeMark(ctx, f, m))
	}
	if step.Lift {
		errs = append(errs, client.IgnoreNotFound(f.Kube.CoordinationV1().Leases(v1beta1.FederationNamespace).Delete(ctx, v1beta1.DrillLease, metav1.DeleteOptions{})))
	}
	if step.Release && d.DeletionTimestamp != nil {
		left := slices.DeleteFunc(slices.Clone(d.Finalizers), func(is string) bool { return is == v1beta1.DrillFinalizer })
		body, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": left, "resourceVersion": d.ResourceVersion}})
		if err == nil {
			_, err = drills.Patch(ctx, d.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: plan.FieldManager})
		}
		errs = append(errs, client.IgnoreNotFound(err))
	}
	return errors.Join(errs...)
}

// writeMark writes the condition Drill of a Cluster as the federation does, or takes it away.
func writeMark(ctx context.Context, f *client.Federation, m plan.Mark) error {
	u, err := m.Object()
	if err != nil {
		return err
	}
	_, err = f.Dynamic.Resource(v1beta1.ClustersResource).ApplyStatus(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: plan.FieldManager, Force: true})
	return err
}

// pause waits for the next look.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
		return nil
	}
}
