package bootstrap

import (
	"context"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// flowName is the name of the controllers' priority level and FlowSchema.
const flowName = "federation-controllers"

// ensureFlow makes sure that the controllers are served whatever users request: they have a priority level of their
// own, with about a third of the server's concurrency, and their Leases that of Kubernetes' leader elections. As with
// Kubernetes' own, an administrator who annotates one with apf.kubernetes.io/autoupdate-spec=false keeps their changes.
// We never set that annotation: Kubernetes deletes, each minute, objects with the value true that it has not made.
func ensureFlow(ctx context.Context, kube kubernetes.Interface) error {
	flow := kube.FlowcontrolV1()
	level := priorityLevel()
	if err := ensure(ctx, flow.PriorityLevelConfigurations(), level, func(is *flowcontrolv1.PriorityLevelConfiguration) bool {
		return taken(is) || !annotated(is) && equality.Semantic.DeepEqual(is.Spec, level.Spec)
	}); err != nil {
		return err
	}
	for _, schema := range []*flowcontrolv1.FlowSchema{
		flowSchema(flowName, flowName, 800, "*", "*", "*"),
		flowSchema("federation-leader-election", "leader-election", 150, "coordination.k8s.io", "leases", v1beta1.FederationNamespace),
	} {
		if err := ensure(ctx, flow.FlowSchemas(), schema, func(is *flowcontrolv1.FlowSchema) bool {
			return taken(is) || !annotated(is) && equality.Semantic.DeepEqual(is.Spec, schema.Spec)
		}); err != nil {
			return err
		}
	}
	return nil
}

func taken(o metav1.Object) bool {
	return o.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey] == "false"
}

func annotated(o metav1.Object) bool {
	_, is := o.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey]
	return is
}

func priorityLevel() *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: flowName}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited,
		Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: new(int32(100)), LendablePercent: new(int32(50)),
			LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue,
				Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 64, HandSize: 6, QueueLengthLimit: 500}},
		},
	}}
}

// flowSchema puts requests of the controllers for a resource into a priority level.
func flowSchema(name, level string, precedence int32, group, resource, namespace string) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
		MatchingPrecedence:         precedence,
		DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByNamespaceType},
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
			Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: pki.ControllersUser}}},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
				Verbs: []string{"*"}, APIGroups: []string{group}, Resources: []string{resource}, Namespaces: []string{namespace}, ClusterScope: namespace == "*",
			}},
		}},
	}}
}
