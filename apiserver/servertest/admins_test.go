package servertest

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

// A copied admin.kubeconfig is worthless once its group is no longer bound, also after a restart. The file for
// emergencies remains.
func TestTheAdminKubeconfigIsWorthWhatItsBindingSays(t *testing.T) {
	dir := t.TempDir()
	first, err := start(options(dir))
	if err != nil {
		t.Fatal(err)
	}
	bindings := first.kube.RbacV1().ClusterRoleBindings()
	binding, err := bindings.Get(t.Context(), v1beta1.AdminsGroup, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding.Subjects = nil
	if _, err := bindings.Update(t.Context(), binding, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	forbidden := func(r *running) bool {
		_, err := r.kube.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	}
	becomesTrue(t, "the admin kubeconfig may do nothing", func() bool { return forbidden(first) })
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second, err := start(options(dir))
	if err != nil {
		t.Fatal(err)
	}
	if !forbidden(second) {
		t.Error("a restart gave the rights back")
	}
	config, err := clientcmd.BuildConfigFromFlags("", pki.FilesIn(dir).SuperAdminKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Host = second.admin.Host
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the kubeconfig for emergencies: %v", err)
	}
	if err := second.stop(); err != nil {
		t.Fatal(err)
	}
}
