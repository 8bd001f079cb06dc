package views

import (
	"context"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/apis/batch"
)

// federatedJobs are Jobs with their UIDs.
type federatedJobs map[string]types.UID

func (j federatedJobs) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	return nil, errors.NewNotFound(batch.Resource("jobs"), name)
}

func (federatedJobs) NewList() runtime.Object { return &batch.JobList{} }

func (j federatedJobs) List(ctx context.Context, _ *metainternalversion.ListOptions) (runtime.Object, error) {
	list := &batch.JobList{}
	if request.NamespaceValue(ctx) == "shop" {
		for name, uid := range j {
			list.Items = append(list.Items, batch.Job{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}})
		}
	}
	return list, nil
}

func (federatedJobs) ConvertToTable(context.Context, runtime.Object, runtime.Object) (*metav1.Table, error) {
	return &metav1.Table{}, nil
}

// TestPodsOfAFederatedJobAreFoundByItsUID: kubectl logs job/report asks so. A member's copy of the Job has another UID.
func TestPodsOfAFederatedJobAreFoundByItsUID(t *testing.T) {
	owners := &Owners{}
	owners.Add(jobs.GroupKind(), federatedJobs{"report": "uid-here", "other": "uid-other"})
	west := newFakeMember(t, "west")
	v, _ := viewsOf(t, owners, west)
	of := func(job, uid string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels = map[string]string{batchv1.JobNameLabel: job, batchv1.ControllerUidLabel: uid}
		}
	}
	west.add("shop", "report-1", of("report", "uid-there"))
	west.add("default", "report-2", of("report", "uid-elsewhere"))
	west.add("shop", "other-1", of("other", "uid-other-there"))
	for query, want := range map[string][]string{
		"shop: batch.kubernetes.io/controller-uid=uid-here":        {"shop/report-1.west"},
		"shop: controller-uid in (uid-here)":                       {"shop/report-1.west"},
		"shop: batch.kubernetes.io/controller-uid=uid-there":       {"shop/report-1.west"}, // the member's own
		"shop: batch.kubernetes.io/controller-uid=nobody":          nil,
		"shop: batch.kubernetes.io/controller-uid":                 {"shop/other-1.west", "shop/report-1.west"},
		"default: batch.kubernetes.io/controller-uid=uid-here":     nil,
		": batch.kubernetes.io/controller-uid=uid-here":            nil,
		"shop: batch.kubernetes.io/controller-uid in (uid-here,x)": nil,
	} {
		namespace, text, _ := strings.Cut(query, ": ")
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o := metainternalversion.ListOptions{LabelSelector: selector}
		names, _, _ := listed(t, v.Pods.REST, namespace, &o)
		t.Run(query, func(t *testing.T) { equal(t, names, want...) })
		if query == "shop: controller-uid in (uid-here)" {
			expect(t, began(t, v.Pods, namespace, o), "ADDED report-1.west")
		}
	}
}
