package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	configurations "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/kubernetes"

	"federation/apiserver/apis/federation/v1beta1"
)

// sample is the ReplicaSet that the bare client's requests are made after, and its namespace.
var sample = objectName(0)

// learn has the federation make one ReplicaSet, and reads in a member what it applied there: defaults and marks are
// part of it, and to send, parse and own them is most of what an apply costs.
func (b *bench) learn(ctx context.Context) (body string, err error) {
	if err := makeNamespace(ctx, sample, b.fed.kube); err != nil {
		return "", err
	}
	j := b.job(sample, 1)
	j.Replicas = int32(len(b.members))
	if _, err := b.create(ctx, j); err != nil {
		return "", err
	}
	member := b.members[b.names[0]]
	var copied *appsv1.ReplicaSet
	if err := until(ctx, func() bool {
		copied, err = member.AppsV1().ReplicaSets(sample).Get(ctx, sample, metav1.GetOptions{})
		return err == nil
	}); err != nil {
		return "", err
	}
	if body, err = applied(copied); err != nil {
		return "", err
	}
	return body, removeNamespace(ctx, sample, b.members, b.fed.kube)
}

// applied is what was applied of a ReplicaSet, but as of another federation: this one removes what it does not know.
func applied(rs *appsv1.ReplicaSet) (string, error) {
	var by string
	for _, m := range rs.ManagedFields {
		if m.Operation == metav1.ManagedFieldsOperationApply {
			by = m.Manager
		}
	}
	out, err := configurations.ExtractReplicaSet(rs, by)
	if err != nil || out.Spec == nil || out.Labels[v1beta1.ManagedByLabel] == "" {
		return "", fmt.Errorf("%s/%s: cannot tell what the federation applied (as %q): %w", rs.Namespace, rs.Name, by, err)
	}
	out.Labels[v1beta1.ManagedByLabel] = strings.Repeat("0", len(out.Labels[v1beta1.ManagedByLabel]))
	text, err := json.Marshal(out)
	return string(text), err
}

// apply sends a member what the federation would send it: a server-side apply of the sample under another name.
func (j job) apply(ctx context.Context, member kubernetes.Interface, name string) error {
	_, err := member.AppsV1().ReplicaSets(j.Namespace).Patch(ctx, name, types.ApplyPatchType, j.body(name),
		metav1.PatchOptions{FieldManager: "bench", Force: new(true), FieldValidation: metav1.FieldValidationIgnore})
	return err
}

// body is the sample's under another name, in the job's namespace, with its number of replicas.
func (j job) body(name string) []byte {
	return []byte(strings.NewReplacer(
		fmt.Sprintf(`"namespace":%q`, sample), fmt.Sprintf(`"namespace":%q`, j.Namespace), fmt.Sprintf("%q", sample), fmt.Sprintf("%q", name),
		`"replicas":1`, fmt.Sprintf(`"replicas":%d`, j.Replicas)).Replace(j.Body))
}
