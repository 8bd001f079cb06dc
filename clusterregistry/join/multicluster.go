package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/mcs-api/config/crd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// multiClusterAnnotation says on the role in a member whether it has the rights to import and export Services: joining again keeps them.
const multiClusterAnnotation = "federation.kubernetes.io/multi-cluster-services"

// decideMultiCluster finds out whether the cluster is to take part: as this join says, or as an earlier one said.
func (r *Request) decideMultiCluster(ctx context.Context, account string) error {
	if r.multiCluster = r.MultiClusterServices != nil && *r.MultiClusterServices; r.MultiClusterServices != nil {
		return nil
	}
	role, err := r.Member.RbacV1().ClusterRoles().Get(ctx, account, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	r.multiCluster = err == nil && role.Annotations[multiClusterAnnotation] == "true"
	return err
}

// ensureMultiClusterServices defines ServiceExports and ServiceImports (KEP-1645) in the member, unless somebody has: a definition
// that is there is left as it is, and they stay when the cluster leaves, since others may use them.
func (r *Request) ensureMultiClusterServices(ctx context.Context) error {
	if !r.multiCluster {
		return nil
	}
	if r.MemberDynamic == nil {
		return errors.New("definitions of ServiceExports and ServiceImports: no dynamic client of the cluster")
	}
	client := r.MemberDynamic.Resource(definitionsResource)
	for _, text := range [][]byte{crd.ServiceExportCRD, crd.ServiceImportCRD} {
		d := &unstructured.Unstructured{}
		if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)).Decode(d); err != nil {
			return err
		}
		_, err := client.Create(ctx, d, metav1.CreateOptions{FieldManager: fieldManager})
		if apierrors.IsAlreadyExists(err) {
			err = r.checkDefinition(ctx, d.GetName())
		} else if err == nil {
			r.say("CustomResourceDefinition %s made", d.GetName())
		}
		if err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: %w", d.GetName(), err)
		}
	}
	return nil
}

// checkDefinition refuses a definition of somebody else that does not serve the version that the federation speaks.
func (r *Request) checkDefinition(ctx context.Context, name string) error {
	is, err := r.MemberDynamic.Resource(definitionsResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	versions, _, err := unstructured.NestedSlice(is.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["name"] == mcsv1beta1.GroupVersion.Version && v["served"] == true {
			r.say("CustomResourceDefinition %s stays as it is", name)
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("what the cluster has does not serve %s: update it to that of mcs-api v0.5 or newer", mcsv1beta1.GroupVersion.Version))
}

// multiClusterRules are the rights for the Multi-Cluster Services API: to read what the member's users export and report on it, to
// export there what is exported at the federation, and to keep imports. Those to Services and EndpointSlices the account has.
func multiClusterRules() []rbacv1.PolicyRule {
	report := []string{"get", "update", "patch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{mcsv1beta1.GroupName}, Resources: []string{mcsv1beta1.ServiceExportPluralName, mcsv1beta1.ServiceImportPluralName}, Verbs: writeVerbs},
		{APIGroups: []string{mcsv1beta1.GroupName}, Resources: []string{mcsv1beta1.ServiceExportPluralName + "/status", mcsv1beta1.ServiceImportPluralName + "/status"}, Verbs: report},
	}
}

// derivedVariables say of an object whether it is one that importing a Service takes: an import, slices with the endpoints of the
// clusters that export it, or the derived Service that these belong to, which selects no pods and takes no address from others.
func derivedVariables() []admissionv1.Variable {
	label := func(object, key string) string {
		return fmt.Sprintf(`%s.metadata.?labels[?%q].orValue("")`, object, key)
	}
	written := `(request.operation != "DELETE" && `
	return []admissionv1.Variable{
		{Name: "derived", Expression: written + `request.resource.group == "" && request.resource.resource == "services" && (` + label("object", mcsv1beta1.LabelServiceName) + ` != "" || ` +
			`oldObject != null && ` + label("oldObject", mcsv1beta1.LabelServiceName) + ` != ""))`},
		{Name: "harmless", Expression: `variables.derived && ` + label("object", mcsv1beta1.LabelServiceName) + fmt.Sprintf(` != "" && object.metadata.name.startsWith(%q) && `, v1beta1.DerivedServicePrefix) +
			`!has(object.spec.selector) && !has(object.spec.externalIPs) && !has(object.spec.externalName) && object.spec.?type.orValue("ClusterIP") == "ClusterIP"`},
		{Name: "remote", Expression: written + `request.resource.group == "discovery.k8s.io" && request.resource.resource == "endpointslices" && ` + label("object", mcsv1beta1.LabelServiceName) + ` != "")`},
		{Name: "serves", Expression: `variables.remote ? ` + label("object", discoveryv1.LabelServiceName) + ` : ""`},
		{Name: "imports", Expression: fmt.Sprintf(`request.resource.group == %q && request.resource.resource == %q`, mcsv1beta1.GroupName, mcsv1beta1.ServiceImportPluralName)},
	}
}

// derivedValidations bound what the account writes for imports, wherever that is: its slices are none of a Service of the member's own.
func derivedValidations() []admissionv1.Validation {
	return []admissionv1.Validation{
		{Expression: `!variables.derived || variables.harmless`, Message: "a derived Service may select no pods, and have no addresses but cluster IPs"},
		{
			Expression: fmt.Sprintf(`variables.serves == "" || variables.serves.startsWith(%q)`, v1beta1.DerivedServicePrefix),
			Message:    "EndpointSlices of other clusters may be those of derived Services only",
		},
	}
}
