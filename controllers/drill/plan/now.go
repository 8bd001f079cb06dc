package plan

import (
	"fmt"
	"slices"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
)

// DrillNow returns a drill of a schedule for somebody to run now: of one that takes turns the cluster, zone or region that is named.
func DrillNow(s *v1beta1.FailoverDrillSchedule, cluster, zone, region string) (*v1beta1.FailoverDrill, error) {
	d := s.Drill()
	d.GenerateName, d.OwnerReferences = s.Name+"-", nil // it is not the schedule's: not counted, and not deleted by it
	names := map[v1beta1.DrillRotation]string{v1beta1.RotateClusters: cluster, v1beta1.RotateZones: zone, v1beta1.RotateRegions: region}
	if given := strings.TrimSpace(strings.Join([]string{cluster, zone, region}, " ")); s.Spec.Rotate == "" {
		if given != "" {
			return nil, fmt.Errorf("%s: leave it out: schedule %s takes its whole scope each time", given, s.Name)
		}
		return d, nil
	}
	name, flag := names[s.Spec.Rotate], "--"+strings.TrimSuffix(strings.ToLower(string(s.Spec.Rotate)), "s")
	if all := s.Spec.Candidates(); name == "" || !slices.Contains(all, name) && !slices.Contains(all, v1beta1.RotateAll) {
		return nil, fmt.Errorf("%s %q: must be one of %s, which schedule %s takes in turn", flag, name, strings.Join(all, ", "), s.Name)
	}
	d.Spec.Scope = s.Spec.Rotate.Of(name)
	return d, nil
}
