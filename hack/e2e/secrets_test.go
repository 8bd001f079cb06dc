package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// refer makes a DaemonSet, which goes to all clusters, whose pods refer to a Secret.
func refer(t *testing.T, namespace, secret string) {
	t.Helper()
	labels, name := map[string]string{"app": "refers-to-" + secret}, "refers-to-"+secret
	daemons := s.fed.client.AppsV1().DaemonSets(namespace)
	_, err := daemons.Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web", Image: "web:1"}},
				Volumes:    []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}},
			},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return daemons.Delete(ctx, name, background) })
}

// secretIn waits until a Secret and a ServiceAccount of that name are in the members named, and in no other.
func secretIn(t *testing.T, name string, in ...string) {
	t.Helper()
	eventually(t, 60*time.Second, func() string {
		for cluster, m := range s.members {
			_, secretErr := m.client.CoreV1().Secrets(ns).Get(t.Context(), name, metav1.GetOptions{})
			_, accountErr := m.client.CoreV1().ServiceAccounts(ns).Get(t.Context(), name, metav1.GetOptions{})
			for what, err := range map[string]error{"Secret": secretErr, "ServiceAccount": accountErr} {
				if there := err == nil; err != nil && !apierrors.IsNotFound(err) || there != slices.Contains(in, cluster) {
					return fmt.Sprintf("%s: %s: %v", cluster, what, err)
				}
			}
		}
		return ""
	})
}

// TestSecretsGoWhereSomethingRefersToThem: what opens doors is in no cluster that has no use for it, and stays where something runs
// that needs it.
func TestSecretsGoWhereSomethingRefersToThem(t *testing.T) {
	const name = "door"
	secrets, accounts, sets := s.fed.client.CoreV1().Secrets(ns), s.fed.client.CoreV1().ServiceAccounts(ns), s.fed.client.AppsV1().ReplicaSets(ns)
	if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"k": "v"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return secrets.Delete(ctx, name, background) })
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: name}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return accounts.Delete(ctx, name, background) })
	eventually(t, 20*time.Second, func() string {
		out, err := s.kubectl(t, "", "federation", "explain", "serviceaccount/"+name, "-n", ns)
		if err != nil || !strings.Contains(out, "nothing refers to it; a policy or --propagate-secrets=All") {
			return out
		}
		return ""
	})
	secretIn(t, name)

	set := replicaSet(name, 3, map[string]string{v1beta1.ReplicaSetPreferencesAnnotation: `{"clusters":{"west-a":{"weight":1}}}`})
	set.Spec.Template.Spec.ServiceAccountName = name
	if _, err := sets.Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error { return sets.Delete(ctx, name, background) })
	secretIn(t, name, "west-a")
	eventually(t, 30*time.Second, func() string {
		if got, err := sets.Get(t.Context(), name, metav1.GetOptions{}); err != nil || got.Status.ReadyReplicas != 3 {
			return fmt.Sprint(err, got.Status)
		}
		return ""
	})
	if err := sets.Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() string {
		u, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || !strings.Contains(u.Annotations[v1beta1.PropagatedAnnotation], "west-a: stays for") {
			return fmt.Sprint(err, u.Annotations)
		}
		return ""
	})
	secretIn(t, name, "west-a")
	if err := s.members["west-a"].client.AppsV1().ReplicaSets(ns).Delete(t.Context(), name, background); err != nil {
		t.Fatal(err)
	}
	secretIn(t, name)
}
