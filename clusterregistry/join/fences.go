package join

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
)

// Rights say what kinds the federation's account may write; fences say which objects of them. They are
// ValidatingAdmissionPolicies: the member's own API server enforces them, whoever has the account's token.

const (
	// AcceptLabel is v1beta1.AcceptLabel.
	AcceptLabel     = v1beta1.AcceptLabel
	alsoAcceptLabel = v1beta1.AlsoAcceptLabel
)

// DefaultProtectedNamespaces are those that the federation may not touch. A "*" at the end stands for any rest.
var DefaultProtectedNamespaces = []string{"kube-*", "openshift-*", "cert-manager", "gatekeeper-system", "kyverno", "istio-system"}

// DefaultAcceptedNamespaces are there in each cluster, and accepted without being asked for.
var DefaultAcceptedNamespaces = []string{metav1.NamespaceDefault}

const (
	// fencesTimeout is how long a cluster may take to enforce policies that were installed. API servers look for changed ones each second.
	fencesTimeout = 30 * time.Second
	// fencesPoll is between two tries whether it does.
	fencesPoll = 100 * time.Millisecond
)

// fences are the policies of the request. API servers learn of them in this order, so that the last one, which says the digest of all, holds when all do.
func (r *Request) fences(uid string) (fences []fence, digest string) {
	lifetime := r.TokenLifetime
	if r.Pull {
		lifetime = 0 // the agent gets them
	}
	fences = []fence{reservedFence(uid), tokenFence(uid, lifetime), accountFence(uid, r.ProtectedNamespaces, r.multiCluster, r.PodSecurityLevel)}
	hash := sha256.New()
	for _, f := range fences {
		text, err := json.Marshal(f.spec)
		if err != nil {
			panic(err) // it is strings and numbers
		}
		_, _ = hash.Write(text) // never fails
	}
	digest = fmt.Sprintf("%x", hash.Sum(nil)[:8])
	account := &fences[len(fences)-1].spec
	account.Validations = slices.Insert(account.Validations, 0, admissionv1.Validation{
		Expression: fmt.Sprintf(`!(request.resource.group == "" && request.resource.resource == "configmaps" && request.?namespace.orValue("") == %q && request.name == %q)`, namespace, v1beta1.FenceTestConfigMap),
		Message:    "fences " + digest,
	})
	return fences, digest
}

// ensureFences installs the policies, or puts them right, and returns when the cluster enforces them. A member older than Kubernetes 1.30 has none.
func (r *Request) ensureFences(ctx context.Context, uid string, meta metav1.ObjectMeta) error {
	fences, digest := r.fences(uid)
	for _, fence := range fences {
		m := meta
		m.Name = meta.Name + fence.suffix
		err := r.ensureFence(ctx, m, fence)
		if apierrors.IsNotFound(err) {
			r.say("this cluster has no ValidatingAdmissionPolicies (Kubernetes 1.30 has): nothing but its rights bounds the account")
			return r.acceptNamespaces(ctx, uid)
		}
		if err != nil {
			return fmt.Errorf("ValidatingAdmissionPolicy %s: %w", m.Name, err)
		}
	}
	if err := r.awaitFences(ctx, uid, digest); err != nil {
		return err
	}
	r.say("fences: the account may write what the federation manages, outside of %s; its pods are held to the level %s", strings.Join(r.ProtectedNamespaces, ", "), r.PodSecurityLevel)
	return r.acceptNamespaces(ctx, uid)
}

// awaitFences waits until the policies with that digest refuse a dry run of the account. The account has no rights yet: it is the group that has them.
func (r *Request) awaitFences(ctx context.Context, uid, digest string) error {
	account, err := r.MemberAs(rest.ImpersonationConfig{UserName: username(uid), Groups: []string{user.SystemPrivilegedGroup}})
	if err != nil {
		return err
	}
	try := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.FenceTestConfigMap}}
	var refusal error // nil: it was allowed
	err = wait.PollUntilContextTimeout(ctx, fencesPoll, fencesTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := account.CoreV1().ConfigMaps(namespace).Create(ctx, try, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if ctx.Err() == nil { // else that is all it says
			refusal = err
		}
		return err != nil && strings.Contains(err.Error(), digest), nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case refusal == nil || strings.Contains(refusal.Error(), AccountName(uid)+"' denied"): // by nobody, or by the policies of before
		return fmt.Errorf("the cluster does not enforce the ValidatingAdmissionPolicies that were installed %v ago: has its API server the admission plugin ValidatingAdmissionPolicy turned off?", fencesTimeout)
	}
	r.say("whether the fences hold could not be tried within %v: %v", fencesTimeout, refusal)
	return nil
}

func (r *Request) ensureFence(ctx context.Context, meta metav1.ObjectMeta, f fence) error {
	client := r.Member.AdmissionregistrationV1()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: f.spec}
	if err := ensure(ctx, client.ValidatingAdmissionPolicies(), policy, func(old *admissionv1.ValidatingAdmissionPolicy) error {
		old.Labels, old.OwnerReferences, old.Spec = meta.Labels, meta.OwnerReferences, f.spec
		return nil
	}); err != nil {
		return err
	}
	spec := admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: spec}
	return ensure(ctx, client.ValidatingAdmissionPolicyBindings(), binding, func(old *admissionv1.ValidatingAdmissionPolicyBinding) error {
		old.Labels, old.OwnerReferences, old.Spec = meta.Labels, meta.OwnerReferences, spec
		return nil
	})
}

// acceptNamespaces labels namespaces that the member has. Those that it has not are passed over.
func (r *Request) acceptNamespaces(ctx context.Context, uid string) error {
	for _, name := range r.AcceptedNamespaces {
		ns, err := r.Member.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil {
			key, value := AcceptLabel, uid
			if other := ns.Labels[AcceptLabel]; other != "" && other != uid {
				key, value = alsoAcceptLabel+uid, "true"
			}
			patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
			_, err = r.Member.CoreV1().Namespaces().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		}
		if err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
		r.say("namespace %s accepts objects of the federation", name)
	}
	return nil
}

// checkNamespaces refuses what is no name of a namespace, nor the beginning of names.
func checkNamespaces(field string, names []string, patterns bool) error {
	for _, name := range names {
		plain := name
		if patterns {
			plain = strings.TrimSuffix(strings.TrimSuffix(name, "*"), "-")
		}
		if problems := validation.IsDNS1123Label(plain); len(problems) > 0 {
			return fmt.Errorf("%s %q: %s", field, name, strings.Join(problems, "; "))
		}
	}
	return nil
}

// fence is a policy, named for the account with a suffix.
type fence struct {
	suffix string
	spec   admissionv1.ValidatingAdmissionPolicySpec
}

// username is that of the federation's account.
func username(uid string) string {
	return "system:serviceaccount:" + namespace + ":" + AccountName(uid)
}

// accountFence holds the federation's account to objects that bear the federation's mark, outside of protected namespaces, and
// out of namespaces that the member had before and that do not accept them; and pods to a level. imports: Services of other clusters are imported into each namespace.
func accountFence(uid string, protected []string, imports bool, podSecurity string) fence {
	imported := "false"
	if imports {
		imported = `(variables.imports || variables.harmless || variables.remote)`
	}
	f := fence{"", admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionv1.Fail),
		MatchConstraints: constraints([]string{"*"}, []string{"*"},
			admissionv1.Create, admissionv1.Update, admissionv1.Delete),
		MatchConditions: []admissionv1.MatchCondition{{Name: "account", Expression: fmt.Sprintf("request.userInfo.username == %q", username(uid))}},
		Variables: append(append(markVariables(), derivedVariables()...),
			admissionv1.Variable{Name: "target", Expression: `request.resource.group == "" && request.resource.resource == "namespaces" ? request.name : request.?namespace.orValue("")`},
			admissionv1.Variable{Name: "protected", Expression: protectedExpression(protected)},
			// To leave, the account deletes its role, and gives that the namespace to own.
			admissionv1.Variable{Name: "leaves", Expression: fmt.Sprintf(`(request.operation == "DELETE" && request.resource.resource == "clusterroles" && request.name == %q) || `+
				`(request.operation == "UPDATE" && request.resource.resource == "namespaces" && request.name == %q && oldObject.metadata.?labels[?%q].orValue("") == %q && `+
				`object.metadata.?labels == oldObject.metadata.?labels && object.metadata.?annotations == oldObject.metadata.?annotations)`,
				AccountName(uid), namespace, FederationLabel, uid)},
			// What the account's own tokens are bound to.
			admissionv1.Variable{Name: "binds", Expression: fmt.Sprintf(`request.operation in ["CREATE", "DELETE"] && request.resource.group == "" && request.resource.resource == "secrets" && `+
				`request.?namespace.orValue("") == %q && request.name.startsWith(%q)`, namespace, AccountName(uid)+"-")},
			// A drill takes the nodes from clients: where the account has the right to that.
			admissionv1.Variable{Name: "drills", Expression: fmt.Sprintf(`request.operation == "UPDATE" && request.resource.group == "coordination.k8s.io" && request.resource.resource == "leases" && `+
				`request.?namespace.orValue("") == %q && request.name == %q`, namespace, v1beta1.DrillLease)},
		),
		Validations: append(derivedValidations(), []admissionv1.Validation{
			{
				Expression:        `variables.leaves || variables.binds || variables.drills || !variables.protected`,
				MessageExpression: `"the namespace " + variables.target + " is protected from the federation: join the cluster with other --protected-namespaces to allow it"`,
			},
			{
				Expression: fmt.Sprintf(`variables.leaves || variables.binds || variables.drills || (request.operation == "CREATE" ? variables.mark == %q : (variables.hadMark == %q || variables.hadHash))`, uid, uid),
				Message:    "the federation may write only objects that it manages",
			},
			{
				Expression: fmt.Sprintf(`request.operation == "DELETE" || request.resource.group != "" || request.resource.resource != "secrets" || !(object.?type.orValue("") in [%q, %q])`,
					corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken),
				Message: "the federation may make no Secrets that are tokens",
			},
			{
				Expression: fmt.Sprintf(`variables.binds || request.operation != "CREATE" || namespaceObject == null || `+imported+` || `+
					`namespaceObject.metadata.?labels[?%q].orValue("") == %q || namespaceObject.metadata.?labels[?%q].orValue("") == %q || `+
					`namespaceObject.metadata.?labels[?%q].hasValue()`,
					v1beta1.ManagedByLabel, uid, AcceptLabel, uid, alsoAcceptLabel+uid),
				MessageExpression: fmt.Sprintf(`"the namespace " + variables.target + " was there before the federation: to let it put objects into it, label it "+%q`, AcceptLabel+"="+uid),
			},
		}...),
	}}
	if podSecurity != Privileged {
		f.spec.Variables, f.spec.Validations = append(f.spec.Variables, podVariables()...), append(f.spec.Validations, podValidations()...)
	}
	return f
}

// tokenFence has the account ask for tokens of itself only that last no longer than that, and that the deletion of a Secret ends. 0: for none.
func tokenFence(uid string, lifetime time.Duration) fence {
	return fence{"-tokens", admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy:    new(admissionv1.Fail),
		MatchConstraints: constraints([]string{""}, []string{"serviceaccounts/token"}, admissionv1.Create),
		MatchConditions:  []admissionv1.MatchCondition{{Name: "account", Expression: fmt.Sprintf("request.userInfo.username == %q", username(uid))}},
		Validations: []admissionv1.Validation{{
			Expression: fmt.Sprintf(`object.spec.?boundObjectRef.?kind.orValue("") == "Secret" && object.spec.boundObjectRef.?name.orValue("").startsWith(%q) && object.spec.?expirationSeconds.orValue(3600) <= %d`,
				AccountName(uid)+"-", int64(lifetime.Seconds())),
			Message: fmt.Sprintf("tokens of the federation's account must be bound to a Secret %s-… and last %s at most", AccountName(uid), lifetime),
		}},
	}}
}

// protectedExpression tells of variables.target whether it is protected.
func protectedExpression(namespaces []string) string {
	terms := []string{fmt.Sprintf("variables.target == %q", namespace)}
	for _, name := range namespaces {
		if prefix, is := strings.CutSuffix(name, "*"); is {
			terms = append(terms, fmt.Sprintf("variables.target.startsWith(%q)", prefix))
		} else {
			terms = append(terms, fmt.Sprintf("variables.target == %q", name))
		}
	}
	return strings.Join(terms, " || ")
}

// markVariables say what the object has of the federation's marks, and had.
func markVariables() []admissionv1.Variable {
	value := func(object, field, key string) string {
		return fmt.Sprintf(`%s == null ? "" : %s.metadata.?%s[?%q].orValue("")`, object, object, field, key)
	}
	return []admissionv1.Variable{
		{Name: "mark", Expression: value("object", "labels", v1beta1.ManagedByLabel)},
		{Name: "hadMark", Expression: value("oldObject", "labels", v1beta1.ManagedByLabel)},
		{Name: "hadHash", Expression: "(" + value("oldObject", "annotations", v1beta1.AppliedHashAnnotation) + `) != ""`},
	}
}

// reservedAnnotations send traffic of the member's nodes elsewhere. Whoever may write Services could take others' addresses.
var reservedAnnotations = []string{v1beta1.ClusterSetIPAnnotation, v1beta1.FallbackAnnotation, v1beta1.FallbackBelowAnnotation}

// reservedFence keeps the federation's mark, and what the node agent believes, from everybody else. What Kubernetes' own
// controllers copy from object to object may be among it.
func reservedFence(uid string) fence {
	groups, resources := []string{"discovery.k8s.io"}, []string{"endpointslices"}
	for _, r := range v1beta1.FederatedResources {
		if !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
		resources = append(resources, r.Resource)
	}
	condition := func(name, expression string) admissionv1.MatchCondition {
		return admissionv1.MatchCondition{Name: name, Expression: expression}
	}
	validations := []admissionv1.Validation{{
		// The EndpointSlices of a Service have its labels. The controller that writes them has any name in some distributions.
		Expression: fmt.Sprintf(`variables.mark != %q || variables.hadMark == %q || request.resource.resource == "endpointslices" && object.metadata.labels[?%q].orValue("") != ""`,
			uid, uid, discoveryv1.LabelServiceName),
		Message: "the label " + v1beta1.ManagedByLabel + " is written by the federation only: leave it out of what you copy",
	}, {
		// Nor is what has it made one of another cluster, or changed.
		Expression: fmt.Sprintf(`request.resource.resource != "endpointslices" || variables.mark != %q || !(%q in object.metadata.labels)`, uid, v1beta1.RemoteServiceLabel),
		Message:    "EndpointSlices of other clusters are written by the federation only",
	}}
	for _, key := range reservedAnnotations {
		validations = append(validations, admissionv1.Validation{
			Expression: fmt.Sprintf(`!(%q in variables.annotations) || variables.annotations[%q] == variables.hadAnnotations[?%q].orValue("")`, key, key, key),
			Message:    "the annotation " + key + " is written by the federation only",
		})
	}
	return fence{"-reserved", admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy:    new(admissionv1.Fail),
		MatchConstraints: constraints(groups, resources, admissionv1.Create, admissionv1.Update),
		MatchConditions: []admissionv1.MatchCondition{
			condition("others", fmt.Sprintf("!request.userInfo.username.startsWith(%q)", "system:serviceaccount:"+namespace+":"+AccountName(""))),
			condition("not-controllers", `!request.userInfo.username.startsWith("system:serviceaccount:kube-system:") && request.userInfo.username != "system:kube-controller-manager"`),
		},
		Variables: append(markVariables(),
			admissionv1.Variable{Name: "annotations", Expression: `object.metadata.?annotations.orValue({})`},
			admissionv1.Variable{Name: "hadAnnotations", Expression: `oldObject == null ? {} : oldObject.metadata.?annotations.orValue({})`}),
		Validations: validations,
	}}
}

func constraints(groups, resources []string, operations ...admissionv1.OperationType) *admissionv1.MatchResources {
	return &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations, Rule: admissionv1.Rule{APIGroups: groups, APIVersions: []string{"*"}, Resources: resources},
	}}}}
}
