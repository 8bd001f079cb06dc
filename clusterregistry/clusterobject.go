package clusterregistry

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/apis/resourceversion"
)

// clusterObject is the Cluster of one name at the federation's API: as it was read last, and how it is written. It belongs to one goroutine.
type clusterObject struct {
	registry *Registry
	name     string

	known  *v1beta1.Cluster                                // the newest that the federation told us
	behind int                                             // reads in a row at which the informer had an older one
	others map[*unstructured.Unstructured]*v1beta1.Cluster // of other names that are the same cluster, as read from the informer
}

// restoredAfter is after how many probes an informer that is behind our own last write is not taken to be late: the federation's store has
// been restored from a backup, and its revisions begin again below those that we know.
const restoredAfter = 5

// refresh takes the Cluster from the informer, unless our own last write returned a newer one. It
// returns false when the Cluster is gone.
func (o *clusterObject) refresh(ctx context.Context) bool {
	obj, exists, err := o.registry.clusters.GetIndexer().GetByKey(o.name)
	if err != nil || !exists {
		return false
	}
	u := obj.(*unstructured.Unstructured)
	if o.known != nil && o.known.UID == u.GetUID() {
		order := cmp.Compare(resourceversion.Of(u), resourceversion.Of(o.known))
		if o.behind++; order >= 0 {
			o.behind = 0
		}
		if order <= 0 && o.behind < restoredAfter {
			return true
		}
	}
	o.behind = 0
	if err := o.learn(u); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read the Cluster")
		return o.known != nil
	}
	return true
}

func toCluster(u *unstructured.Unstructured) (*v1beta1.Cluster, error) {
	c := &v1beta1.Cluster{}
	return c, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, c)
}

// secret returns the Secret with the cluster's credential.
func (o *clusterObject) secret() (*corev1.Secret, error) {
	ref := o.known.Spec.SecretRef
	if ref == nil || ref.Name == "" {
		return nil, errors.New("spec.secretRef.name must name a Secret in namespace " + v1beta1.FederationNamespace)
	}
	obj, exists, err := o.registry.secrets.GetIndexer().GetByKey(v1beta1.FederationNamespace + "/" + ref.Name)
	if err != nil || !exists {
		return nil, fmt.Errorf("spec.secretRef.name: there is no Secret %q in namespace %s", ref.Name, v1beta1.FederationNamespace)
	}
	return obj.(*corev1.Secret), nil
}

// fieldManager owns what the registry knows of a Cluster. Capacity and failover have others: by server-side apply each
// leaves the others' conditions and fields alone.
const fieldManager = "federation-registry"

// learnPastCache reads the Cluster, which is not what the informer has any more.
func (o *clusterObject) learnPastCache(ctx context.Context) error {
	u, err := o.registry.dynamic.Resource(v1beta1.ClustersResource).Get(ctx, o.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	return o.learn(u)
}

// learn notes the Cluster as the federation has it.
func (o *clusterObject) learn(u *unstructured.Unstructured) error {
	c, err := toCluster(u)
	if err == nil {
		o.known = c
	}
	return err
}

// write applies the status to the version of the Cluster that it was decided from, and to no other: a process that reported before may
// write late.
func (o *clusterObject) write(ctx context.Context, s v1beta1.ClusterStatus) error {
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		return err
	}
	u, err := o.registry.dynamic.Resource(v1beta1.ClustersResource).ApplyStatus(ctx, o.name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta1.SchemeGroupVersion.String(), "kind": "Cluster",
		"metadata": map[string]any{"name": o.name, "uid": string(o.known.UID), "resourceVersion": o.known.ResourceVersion}, "status": status,
	}}, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return err
	}
	return o.learn(u)
}

// byUID is the index of Clusters by status.uid.
const byUID = "uid"

func uidOf(obj any) ([]string, error) {
	if uid, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "status", "uid"); uid != "" {
		return []string{uid}, nil
	}
	return nil, nil
}

// othersWith returns the Clusters of other names whose status has the UID. Each version of one is read once, for that takes long, and is asked once a second.
func (o *clusterObject) othersWith(uid string) (clusters []*v1beta1.Cluster) {
	found, err := o.registry.clusters.GetIndexer().ByIndex(byUID, uid)
	utilruntime.Must(err) // the index is there
	read := o.others
	o.others = map[*unstructured.Unstructured]*v1beta1.Cluster{}
	for _, obj := range found {
		u := obj.(*unstructured.Unstructured)
		if u.GetName() == o.name {
			continue
		}
		c := read[u]
		if c == nil {
			if c, err = toCluster(u); err != nil {
				continue
			}
		}
		o.others[u] = c
		clusters = append(clusters, c)
	}
	return clusters
}

// reportReplaced tells people that another cluster than before answers by a Cluster's name.
func (o *clusterObject) reportReplaced(was, is string) {
	o.registry.options.Recorder.Eventf(o.reference(), corev1.EventTypeWarning, v1beta1.EventClusterReplaced,
		"it is another cluster than before, or was installed again: its UID was %s and is %s; objects are created there again", was, is)
}

func (o *clusterObject) event(ready *v1beta1.ClusterCondition) {
	kind := corev1.EventTypeWarning
	if ready.Status == corev1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	o.registry.options.Recorder.Event(o.reference(), kind, ready.Reason, ready.Message)
}

// tellLacking returns what tells, from any goroutine, what the cluster does not let us see.
func (o *clusterObject) tellLacking() func(resource string, err error) {
	reference, logger := o.reference(), klog.Background().WithValues("cluster", o.name)
	return func(resource string, err error) {
		logger.Info("The cluster refuses a list or a watch", "resource", resource, "err", err)
		if o.registry.reports() {
			o.registry.options.Recorder.Event(reference, corev1.EventTypeWarning, "MissingPermissions", missingPermission(resource, err))
		}
	}
}

func (o *clusterObject) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster", Name: o.name, UID: o.known.UID}
}
