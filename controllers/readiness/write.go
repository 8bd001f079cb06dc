package readiness

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/readiness/plan"
)

// FieldManager owns the status of FailoverReadinesses, except the last drill.
const FieldManager = "federation-readiness"

// standings returns the domains, the smallest first because they cost least. An evaluation that expires counts as changed afterwards; one that awaits a
// refit is not due.
func (c *Controller) standings(now time.Time) (names []string, all []plan.Standing) {
	names = slices.SortedFunc(maps.Keys(c.domains), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(c.domains[a].Clusters), len(c.domains[b].Clusters)), cmp.Compare(a, b))
	})
	for _, name := range names {
		d := c.domains[name]
		if !d.again.IsZero() && !now.Before(d.again) {
			d.Urgency, d.OnlyRoom, d.again = max(d.Urgency, plan.Changed), false, time.Time{}
		}
		is := d.Standing
		if d.awaitsRefit(now) {
			is.Urgency = plan.None
		}
		all = append(all, is)
	}
	return names, all
}

// statusFromAPI returns the status of a domain from the API.
func (c *Controller) statusFromAPI(name string) (s v1beta1.FailoverReadinessStatus) {
	if r := c.storedObject(name); r != nil {
		return *r.Status.DeepCopy()
	}
	return s
}

// decoded is an object of the cache, read.
type decoded struct {
	from *unstructured.Unstructured
	is   *v1beta1.FailoverReadiness
}

// storedObject returns the object of a domain from the cache, nil if there is none; it must not be changed.
func (c *Controller) storedObject(name string) *v1beta1.FailoverReadiness {
	u := c.get(key{v1beta1.ReadinessResource, types.NamespacedName{Name: name}})
	if had := c.stored[name]; u != nil && had.from == u {
		return had.is
	}
	delete(c.stored, name)
	r := &v1beta1.FailoverReadiness{}
	if u == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r) != nil {
		return nil
	}
	c.stored[name] = decoded{u, r}
	return r
}

// setStatus sets a new status for a domain. Others write its last drill.
func (c *Controller) setStatus(d *domain, status v1beta1.FailoverReadinessStatus) {
	was, is := plan.Verdict(&d.status), plan.Verdict(&status)
	d.status = status
	if was.Status != is.Status {
		klog.Background().Info("The verdict on the loss of a domain changed", "domain", d.Spec.Domain(), "survivable", is.Status, "reason", is.Reason, "message", is.Message)
	}
}

// writeIfDue writes the status of a domain if it differs from the written one, at most once a minute. It returns when
// to try again.
func (c *Controller) writeIfDue(ctx context.Context, d *domain, now time.Time) (next time.Duration) {
	if d.Evaluated.IsZero() {
		return 0
	}
	is := c.storedObject(d.Name)
	if is != nil && is.Spec == d.Spec && plan.Same(&is.Status, c.withDrill(d, is)) {
		return 0
	}
	pause := plan.WriteEvery
	if d.failed || is != nil && plan.Verdict(&is.Status).Status != plan.Verdict(&d.status).Status {
		pause = retryAfter
	}
	if left := d.written.Add(pause).Sub(now); left > 0 {
		return left
	}
	d.written = now
	err := c.writeDomain(ctx, d, is)
	if d.failed = err != nil && ctx.Err() == nil; d.failed {
		klog.FromContext(ctx).Error(err, "Cannot write the FailoverReadiness", "failoverReadiness", d.Name)
		return retryAfter
	}
	return 0
}

// withDrill returns the status of a domain with its last drill from the API, and the condition that follows from it.
func (c *Controller) withDrill(d *domain, is *v1beta1.FailoverReadiness) *v1beta1.FailoverReadinessStatus {
	s := d.status.DeepCopy()
	if s.LastDrill = is.Status.LastDrill; s.EvaluatedAt != nil {
		meta.SetStatusCondition(&s.Conditions, plan.Drilled(s.LastDrill, *s.EvaluatedAt))
	}
	return s
}

// writeDomain creates the object if there is none, writes its status, and emits an event if the verdict has changed.
func (c *Controller) writeDomain(ctx context.Context, d *domain, is *v1beta1.FailoverReadiness) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	client := c.Client.Resource(v1beta1.ReadinessResource)
	if is != nil && is.Spec != d.Spec { // somebody else's
		return client.Delete(ctx, d.Name, metav1.DeleteOptions{})
	}
	if is == nil {
		u, err := client.Create(ctx, objectHead(d, map[string]any{"spec": specOf(d)}), metav1.CreateOptions{FieldManager: FieldManager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		is = &v1beta1.FailoverReadiness{ObjectMeta: metav1.ObjectMeta{Name: d.Name}}
		if u != nil {
			is.UID = u.GetUID()
		}
	}
	status := c.withDrill(d, is)
	status.LastDrill = nil // others own it
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return err
	}
	u, err := client.ApplyStatus(ctx, d.Name, objectHead(d, map[string]any{"status": content}), metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	if err != nil {
		return err
	}
	c.emitEvent(is, u, status)
	return nil
}

func objectHead(d *domain, rest map[string]any) *unstructured.Unstructured {
	rest["apiVersion"], rest["kind"], rest["metadata"] = v1beta1.SchemeGroupVersion.String(), "FailoverReadiness", map[string]any{"name": d.Name}
	return &unstructured.Unstructured{Object: rest}
}

func specOf(d *domain) map[string]any {
	if d.Spec.Zone != "" {
		return map[string]any{"zone": d.Spec.Zone}
	}
	return map[string]any{"region": d.Spec.Region}
}

// emitEvent emits an event if the verdict differs from the written one.
func (c *Controller) emitEvent(was *v1beta1.FailoverReadiness, u *unstructured.Unstructured, is *v1beta1.FailoverReadinessStatus) {
	before, after := plan.Verdict(&was.Status), plan.Verdict(is)
	if before.Status == after.Status || before.Reason == v1beta1.ReadinessNotEvaluated && after.Status == metav1.ConditionTrue {
		return
	}
	about := &corev1.ObjectReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverReadiness", Name: u.GetName(), UID: u.GetUID()}
	switch after.Status {
	case metav1.ConditionTrue:
		c.Recorder.Event(about, corev1.EventTypeNormal, "Survivable", after.Message)
	case metav1.ConditionFalse:
		c.Recorder.Event(about, corev1.EventTypeWarning, "NotSurvivable", after.Reason+": "+after.Message)
	default:
		c.Recorder.Event(about, corev1.EventTypeWarning, "SurvivalUnknown", after.Reason+": "+after.Message)
	}
}

// deleteObsolete deletes the FailoverReadinesses of domains that no longer exist.
func (c *Controller) deleteObsolete(ctx context.Context) {
	for _, obj := range c.Informers(v1beta1.ReadinessResource).GetStore().List() {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || c.domains[u.GetName()] != nil {
			continue
		}
		timed, cancel := context.WithTimeout(ctx, writeTimeout)
		err := c.Client.Resource(v1beta1.ReadinessResource).Delete(timed, u.GetName(), metav1.DeleteOptions{})
		cancel()
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot delete the FailoverReadiness of a removed domain; will retry", "failoverReadiness", u.GetName())
		}
	}
}
