package join

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// fieldManager is who applies, in the member, what joining also installs.
const fieldManager = "kubectl-federation"

// installAlso applies the objects of Also, in order. The federation's role owns them, save a Namespace, so that they go when
// the cluster leaves.
func (r *Request) installAlso(ctx context.Context, m metav1.ObjectMeta) error {
	for _, obj := range r.Also {
		obj = obj.DeepCopy()
		if obj.GetKind() != "Namespace" {
			obj.SetLabels(m.Labels)
			obj.SetOwnerReferences(m.OwnerReferences)
		}
		plural, _ := meta.UnsafeGuessKindToResource(obj.GroupVersionKind())
		var client dynamic.ResourceInterface = r.MemberDynamic.Resource(plural)
		if ns := obj.GetNamespace(); ns != "" {
			client = r.MemberDynamic.Resource(plural).Namespace(ns)
		}
		if _, err := client.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		r.say("%s %s installed", obj.GetKind(), obj.GetName())
	}
	return nil
}

// daemonSets are the names of those that joining also installed.
func (r *Request) daemonSets(ctx context.Context, uid string) (names []string, err error) {
	list, err := r.Member.AppsV1().DaemonSets(namespace).List(ctx, metav1.ListOptions{LabelSelector: FederationLabel + "=" + uid})
	if err != nil {
		return nil, err
	}
	for _, d := range list.Items {
		names = append(names, d.Name)
	}
	return names, nil
}
