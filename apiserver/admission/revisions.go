package admission

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"federation/apiserver/apis/federation/v1beta1"
)

// markRevision decides, when an object is made, whether it is a revision, and lets nobody change that afterwards: it would be federated, and run,
// or be federated no more while its copies run on. A ReplicaSet that a Deployment controls is one, whoever makes it.
func (p *Plugin) markRevision(ctx context.Context, a admission.Attributes, object metav1.Object) error {
	const key = v1beta1.RevisionOfLabel
	value := object.GetLabels()[key]
	if a.GetOperation() == admission.Create {
		switch {
		case ofDeployment(a.GetResource().GroupResource(), object):
			setLabel(object, key, "Deployment")
		case value != "" && !ofControllers(a) && !p.mayRestore(ctx, a):
			return admission.NewForbidden(a, fmt.Errorf("metadata.labels[%s]: only the federation writes it, on the revisions that it keeps: leave it out", key))
		}
		return nil
	}
	if old := labelsOf(a.GetOldObject())[key]; old != value {
		setLabel(object, key, old)
	}
	return nil
}

// ofDeployment reports whether an object is a ReplicaSet that a Deployment controls.
func ofDeployment(resource schema.GroupResource, object metav1.Object) bool {
	controller := metav1.GetControllerOf(object)
	if controller == nil || controller.Kind != "Deployment" || resource != (schema.GroupResource{Group: appsv1.GroupName, Resource: "replicasets"}) {
		return false
	}
	version, err := schema.ParseGroupVersion(controller.APIVersion)
	return err == nil && version.Group == appsv1.GroupName
}

// setLabel gives an object a label; "" takes it off.
func setLabel(object metav1.Object, key, value string) {
	labels := maps.Clone(object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	if labels[key] = value; value == "" {
		delete(labels, key)
	}
	object.SetLabels(labels)
}
