package drillschedule

import (
	"time"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/generic"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/status"
	"federation/apiserver/registry/store"
	"federation/apiserver/registry/table"
)

// NewREST returns the storage of failoverdrillschedules and of their status.
func NewREST(options generic.RESTOptionsGetter) (*store.REST, *status.REST, error) {
	s := newStrategy()
	r, err := store.New(store.Kind{
		Object: &v1beta1.FailoverDrillSchedule{}, List: &v1beta1.FailoverDrillScheduleList{}, Resource: v1beta1.DrillSchedulesResource, ShortName: "fds", Strategy: s, Tables: tables,
	}, options)
	if err != nil {
		return nil, nil, err
	}
	return r, status.New(r.Store, statusStrategy{strategy: s}), nil
}

// tables are the columns of `kubectl get failoverdrillschedules`: those of CronJobs, with scope and method.
var tables = table.Convertor[*v1beta1.FailoverDrillSchedule]{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the schedule."},
		{Name: "Schedule", Type: "string", Description: "When drills are made, in cron format."},
		{Name: "Timezone", Type: "string", Description: "The time zone of that."},
		{Name: "Method", Type: "string", Description: "How clusters are taken out."},
		{Name: "Suspend", Type: "boolean", Description: "Whether no drill is made."},
		{Name: "Active", Type: "integer", Description: "Drills that have not ended."},
		{Name: "Last Schedule", Type: "string", Description: "How long ago the last drill was made."},
		{Name: "Next", Type: "string", Description: "How long until the next one is made."},
		{Name: "Age", Type: "string", Description: "Time since the schedule was made."},
	},
	Row: func(s *v1beta1.FailoverDrillSchedule) []any {
		zone, next := "<none>", "<none>"
		if s.Spec.TimeZone != nil {
			zone = *s.Spec.TimeZone
		}
		last := "<none>"
		if at := s.Status.LastScheduleTime; at != nil {
			last = metatable.ConvertToHumanReadableDateType(*at)
		}
		if at := s.Status.NextScheduleTime; at != nil {
			next = metatable.ConvertToHumanReadableDateType(metav1.NewTime(time.Now().Add(-time.Until(at.Time))))
		}
		return []any{s.Name, s.Spec.Schedule, zone, string(s.Spec.Template.Spec.Method), s.Spec.Suspended(), len(s.Status.Active), last, next,
			metatable.ConvertToHumanReadableDateType(s.CreationTimestamp)}
	},
}
