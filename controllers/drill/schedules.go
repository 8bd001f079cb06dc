package drill

import (
	"context"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/drill/plan"
)

// Schedules creates the drills of FailoverDrillSchedules. Make it with NewSchedules.
type Schedules struct {
	client    dynamic.Interface
	informers func(schema.GroupVersionResource) cache.SharedIndexInformer
	recorder  record.EventRecorder
	*changes
}

// scheduledFrom are the resources that schedules are decided from.
var scheduledFrom = []schema.GroupVersionResource{v1beta1.DrillSchedulesResource, v1beta1.FailoverDrillsResource, v1beta1.ClustersResource, v1beta1.ReadinessResource}

// NewSchedules makes a controller and subscribes it to schedules and drills. It creates and deletes drills by client.
func NewSchedules(client dynamic.Interface, informers func(schema.GroupVersionResource) cache.SharedIndexInformer, recorder record.EventRecorder) (*Schedules, error) {
	changes, err := follow(informers, scheduledFrom, v1beta1.DrillSchedulesResource, v1beta1.FailoverDrillsResource)
	return &Schedules{client: client, informers: informers, recorder: recorder, changes: changes}, err
}

// Run works until ctx is done, and returns nil then. The informers must have been started.
func (s *Schedules) Run(ctx context.Context) error {
	defer s.unlisten()
	if !s.synced(ctx) {
		return nil
	}
	s.wake.Repeat(ctx, 0, s.reconcile)
	return nil
}

// reconcile takes the next step of each schedule. It returns when to run again; 0 means at the next change.
func (s *Schedules) reconcile(ctx context.Context) (next time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	schedules := listDecoded[v1beta1.FailoverDrillSchedule](s.informers(v1beta1.DrillSchedulesResource))
	if len(schedules) == 0 {
		return 0
	}
	w := &plan.Scheduling{Now: time.Now(), Drills: listDecoded[v1beta1.FailoverDrill](s.informers(v1beta1.FailoverDrillsResource)),
		Clusters: listDecoded[v1beta1.Cluster](s.informers(v1beta1.ClustersResource)), Readiness: listDecoded[v1beta1.FailoverReadiness](s.informers(v1beta1.ReadinessResource))}
	for _, of := range schedules {
		if of.DeletionTimestamp != nil {
			continue
		}
		step := plan.NextOfSchedule(of, w)
		again := step.LookAgain
		if err := s.execute(ctx, of, &step); err != nil {
			if again = retryAfter; !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				klog.FromContext(ctx).Error(err, "Cannot carry out a drill schedule; will retry", "schedule", of.Name)
			}
		}
		if again > 0 && (next == 0 || again < next) {
			next = again
		}
	}
	return next
}

// execute creates the drill first and then records it: if a process dies in between, the next one finds the drill.
func (s *Schedules) execute(ctx context.Context, of *v1beta1.FailoverDrillSchedule, step *plan.ScheduleStep) error {
	about := &corev1.ObjectReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "FailoverDrillSchedule", Name: of.Name, UID: of.UID}
	drills := s.client.Resource(v1beta1.FailoverDrillsResource)
	if step.Make != nil {
		u, err := plan.Unstructured(step.Make, "FailoverDrill")
		if err != nil {
			return err
		}
		switch _, err = drills.Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager}); {
		case err == nil:
			s.recorder.Eventf(about, corev1.EventTypeNormal, "SuccessfulCreate", "made drill %s", step.Make.Name)
		case apierrors.IsInvalid(err) || apierrors.IsForbidden(err): // a retry would not help; the schedule's next time may
			s.recorder.Eventf(about, corev1.EventTypeWarning, "FailedCreate", "drill %s: %v", step.Make.Name, err)
		case !apierrors.IsAlreadyExists(err):
			return err
		}
	}
	if missed := step.Status.LastMissed; missed != nil && !reflect.DeepEqual(missed, of.Status.LastMissed) {
		s.recorder.Eventf(about, corev1.EventTypeWarning, "MissSchedule", "no drill was made at %s: %s", missed.Time.UTC().Format(time.RFC3339), missed.Reason)
	}
	if !reflect.DeepEqual(step.Status, of.Status) {
		next := of.DeepCopy()
		next.Status = step.Status
		u, err := plan.Unstructured(next, "FailoverDrillSchedule")
		if err != nil {
			return err
		}
		if _, err := s.client.Resource(v1beta1.DrillSchedulesResource).UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil {
			return err
		}
	}
	for _, d := range step.Delete {
		err := drills.Delete(ctx, d.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &d.UID, ResourceVersion: &d.ResourceVersion}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// listDecoded returns the objects of an informer's store that can be decoded.
func listDecoded[T any](informer cache.SharedIndexInformer) []*T {
	objects, _ := listDecodedOnce[T](informer, nil)
	return objects
}

// listDecodedOnce returns the objects of an informer's store that can be decoded, and by which object of the store each is known. What is known from
// the call before is not decoded again.
func listDecodedOnce[T any](informer cache.SharedIndexInformer, known map[any]*T) (objects []*T, by map[any]*T) {
	by = map[any]*T{}
	for _, obj := range informer.GetStore().List() {
		one := known[obj]
		if one == nil {
			one = new(T)
			if err := from(obj, one); err != nil {
				klog.Background().Error(err, "Cannot decode an object; skipped")
				continue
			}
		}
		by[obj] = one
		objects = append(objects, one)
	}
	return objects, by
}
