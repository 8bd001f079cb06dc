package addons

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/clusterregistry/join"
)

// clusterSetDomain is the domain of imported Services, as KEP-1645 has it.
const clusterSetDomain = "clusterset.local"

// coreDNSName is what CoreDNS, its configuration and its account are called in kube-system, as kubeadm does.
const coreDNSName = "coredns"

// kubernetesPlugin is the line by which a Corefile begins the plugin that serves a cluster's names: indent, zones, and the brace if a block
// follows.
var kubernetesPlugin = regexp.MustCompile(`(?m)^([ \t]*)kubernetes[ \t]+([^{}\n#]*?)[ \t]*(\{)?[ \t]*$`)

// withClusterSet returns a Corefile that also serves imported Services. One that does stays as it is.
func withClusterSet(corefile string) (string, error) {
	for _, at := range kubernetesPlugin.FindAllStringSubmatchIndex(corefile, -1) {
		indent, zones, block := corefile[at[2]:at[3]], strings.Fields(corefile[at[4]:at[5]]), at[6] >= 0
		own := slices.IndexFunc(zones, func(zone string) bool { return !strings.HasSuffix(zone, ".arpa") && zone != clusterSetDomain })
		if own < 0 {
			continue
		}
		line := indent + "    multicluster " + clusterSetDomain + "\n"
		rest := corefile[at[1]:]
		if block {
			end := strings.Index(rest, "}")
			if end < 0 {
				return "", errors.New("the block of the plugin kubernetes has no end")
			}
			if strings.Contains(rest[:end], "multicluster ") {
				line = ""
			}
		}
		if !slices.Contains(zones, clusterSetDomain) {
			zones = slices.Insert(zones, own+1, clusterSetDomain)
		}
		text := indent + "kubernetes " + strings.Join(zones, " ") + " {"
		if !block {
			return corefile[:at[0]] + text + "\n" + line + indent + "}" + rest, nil
		}
		return corefile[:at[0]] + text + "\n" + line + strings.TrimPrefix(rest, "\n"), nil
	}
	return "", errors.New("there is no line \"kubernetes ZONES\" with a zone of the cluster")
}

// PatchCoreDNS has CoreDNS of a cluster serve imported Services: it changes its Corefile, unless that does, and adds its rights to what the join
// installs.
func PatchCoreDNS(ctx context.Context, member kubernetes.Interface, r *join.Request) (changed bool, err error) {
	for _, obj := range coreDNSRole() {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return false, err
		}
		r.Also = append(r.Also, &unstructured.Unstructured{Object: content})
	}
	maps := member.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	m, err := maps.Get(ctx, coreDNSName, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("ConfigMap %s/%s: %w", metav1.NamespaceSystem, coreDNSName, err)
	}
	patched, err := withClusterSet(m.Data["Corefile"])
	if err != nil {
		return false, fmt.Errorf("the Corefile in ConfigMap %s/%s: %w", metav1.NamespaceSystem, coreDNSName, err)
	}
	if patched == m.Data["Corefile"] {
		return false, nil
	}
	m.Data["Corefile"] = patched
	if _, err := maps.Update(ctx, m, metav1.UpdateOptions{}); err != nil {
		return false, fmt.Errorf("ConfigMap %s/%s: %w", metav1.NamespaceSystem, coreDNSName, err)
	}
	return true, nil
}

// coreDNSRole lets CoreDNS read what is imported.
func coreDNSRole() []runtime.Object {
	const name = "federation-coredns-imports"
	return []runtime.Object{
		&rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{mcsv1beta1.GroupName}, Resources: []string{mcsv1beta1.ServiceImportPluralName}, Verbs: []string{"list", "watch"}}},
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: coreDNSName}},
		},
	}
}

// CoreDNSHint says what makes CoreDNS serve imported Services.
const CoreDNSHint = `for names of imported Services, change the Corefile of CoreDNS (1.12.2 or newer), or join with --patch-coredns:
    kubernetes cluster.local clusterset.local ... {
        multicluster clusterset.local
        ...
    }
and let its account list and watch serviceimports.multicluster.x-k8s.io
`
