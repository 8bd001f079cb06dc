package admission

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"federation/apiserver/apis/federation/v1beta1"
)

// checkDrill refuses a drill by a method, or without an approval, to which its user has no right, and an approval by who made the drill. So who may
// evacuate need not be able to isolate.
func (p *Plugin) checkDrill(ctx context.Context, a admission.Attributes) error {
	if a.GetResource().GroupResource() != v1beta1.FailoverDrillsResource.GroupResource() || p.authorizer == nil || a.GetUserInfo() == nil {
		return nil
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
	if verb := strings.ToLower(string(d.Spec.Method)); verb != "" && !p.mayDrill(ctx, a, verb) {
		return admission.NewForbidden(a, fmt.Errorf("spec.method: %s takes the verb %s on %s", d.Spec.Method, verb, v1beta1.FailoverDrillsResource.GroupResource()))
	}
	if d.Spec.Approval != v1beta1.DrillApprovalRequired && !p.mayDrill(ctx, a, "approve") {
		return admission.NewForbidden(a, fmt.Errorf("spec.approval: must be %s, for somebody else to approve it: %s takes the verb approve on %s",
			v1beta1.DrillApprovalRequired, v1beta1.DrillApprovalNotRequired, v1beta1.FailoverDrillsResource.GroupResource()))
	}
	return nil
}

func (p *Plugin) mayDrill(ctx context.Context, a admission.Attributes, verb string) bool {
	decision, _, err := p.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verb, Name: a.GetName(), ResourceRequest: true,
		APIGroup: v1beta1.GroupName, APIVersion: v1beta1.SchemeGroupVersion.Version, Resource: v1beta1.FailoverDrillsResource.Resource,
	})
	return err == nil && decision == authorizer.DecisionAllow
}
