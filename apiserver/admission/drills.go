package admission

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"federation/apiserver/apis/federation/v1beta1"
)

// checkDrill rejects a drill, or a schedule of drills, whose user has no permission for its method, or for doing
// without approval; and an approval by the drill's creator. So a user who may evacuate need not be allowed to isolate.
func (p *Plugin) checkDrill(ctx context.Context, a admission.Attributes) error {
	if a.GetResource().Group != v1beta1.GroupName || p.authorizer == nil || a.GetUserInfo() == nil {
		return nil
	}
	if s, ok := a.GetObject().(*v1beta1.FailoverDrillSchedule); ok {
		if was, ok := a.GetOldObject().(*v1beta1.FailoverDrillSchedule); a.GetSubresource() != "" || ok && a.GetOperation() == admission.Update && !was.MakesOther(s) {
			return nil
		}
		return p.checkMethod(ctx, a, &s.Spec.Template.Spec, "spec.template.spec.")
	}
	d, ok := a.GetObject().(*v1beta1.FailoverDrill)
	switch {
	case !ok:
		return nil
	case a.GetOperation() == admission.Update && a.GetSubresource() == "approval":
		if old := a.GetOldObject().(*v1beta1.FailoverDrill); old.Status.RequestedBy == a.GetUserInfo().GetName() {
			return admission.NewForbidden(a, fmt.Errorf("%s made this drill: somebody else has to approve it", old.Status.RequestedBy))
		}
		return nil
	case a.GetOperation() != admission.Create || a.GetSubresource() != "":
		return nil
	}
	return p.checkMethod(ctx, a, &d.Spec, "spec.")
}

// checkMethod rejects drills whose user has no permission for the method, or for doing without approval. at is their
// path in the object.
func (p *Plugin) checkMethod(ctx context.Context, a admission.Attributes, s *v1beta1.FailoverDrillSpec, at string) error {
	if verb := strings.ToLower(string(s.Method)); verb != "" && !p.isAllowed(ctx, a, verb, v1beta1.FailoverDrillsResource.Resource) {
		return admission.NewForbidden(a, fmt.Errorf("%smethod: %s takes the verb %s on %s", at, s.Method, verb, v1beta1.FailoverDrillsResource.GroupResource()))
	}
	if s.Approval != v1beta1.DrillApprovalRequired && !p.isAllowed(ctx, a, "approve", v1beta1.FailoverDrillsResource.Resource) {
		return admission.NewForbidden(a, fmt.Errorf("%sapproval: must be %s, for somebody else to approve it: %s takes the verb approve on %s",
			at, v1beta1.DrillApprovalRequired, v1beta1.DrillApprovalNotRequired, v1beta1.FailoverDrillsResource.GroupResource()))
	}
	return p.checkProbes(a, s, at)
}

// checkProbes rejects probes of names outside of the federation: nobody may make it query others.
func (p *Plugin) checkProbes(a admission.Attributes, s *v1beta1.FailoverDrillSpec, at string) error {
	if p.names == nil {
		return nil
	}
	names := p.names()
	if names == nil {
		return nil // its own DNS server answers for no other names
	}
	var errs field.ErrorList
	for i := range s.Probes {
		probe := &s.Probes[i]
		if name := probe.DNSName(names.Federation, names.Zone); probe.Service == nil && !strings.HasSuffix(name, "."+strings.ToLower(names.Zone)+".") {
			errs = append(errs, field.Invalid(field.NewPath(at+"probes").Index(i).Child("host"), probe.Host, "must be in the federation's zone "+names.Zone))
		}
	}
	if len(errs) > 0 {
		return errors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	return nil
}
