// Package bootstrap keeps the objects that a federation needs: its own namespace, and the RBAC about clusters.
//
// The objects are values; Ensure writes those that differ. It runs at each start, so that a new version brings its permissions
// along, and changed or deleted objects are restored.
package bootstrap

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
)

var (
	reading = []string{"get", "list", "watch"}
	writing = []string{"create", "update", "patch", "delete", "deletecollection"}
	// drillMethods are verbs: who may create a drill by which method. blackhole, which clients notice, is separate.
	drillMethods = []string{"shift", "evacuate", "isolate"}
	blackhole    = "blackhole"
	change       = []string{"update", "patch", "get", "list", "watch"}
)

func namespaces() (all []*corev1.Namespace) {
	for _, name := range []string{v1beta1.FederationNamespace, v1beta1.LoadBalancersNamespace} {
		all = append(all, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return all
}

// controllersName is the name of the roles and bindings of the controllers.
const controllersName = pki.ControllersUser

// clusterRoles returns the controllers' own, those that aggregate to Kubernetes' view and edit (and so to admin), and
// those for people who run the federation. Nothing about Clusters aggregates: a user who may write them can send the
// federation's credential for a member to any address, and a binding to Kubernetes' admin is for running workloads, not
// clusters.
func clusterRoles() []*rbacv1.ClusterRole {
	ours := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rule(v1beta1.GroupName, verbs, resource)
	}
	grants := ours("dnsnamegrants", reading...)
	drills := rule(v1beta1.GroupName, reading, "failoverdrills", "failoverdrillschedules")
	runDrills := []rbacv1.PolicyRule{ours("failoverdrills", append(slices.Clone(drillMethods), writing...)...), ours("failoverdrills/abort", "update", "patch"),
		ours("failoverdrillschedules", writing...)}
	nodes, podUse := rbacv1.PolicyRule{APIGroups: []string{"", "metrics.k8s.io"}, Verbs: reading, Resources: []string{"nodes"}}, rule("metrics.k8s.io", reading, "pods") // of members
	profiles := rule(inventoryGroup, reading, "clusterprofiles")
	see, policies, review := ours("clusters", reading...), ours("placementpolicies", reading...), ours("failoverreviews", "create")
	drain := ours("clusters/"+v1beta1.DrainSubresource, "get", "update", "patch")
	ready := ours("failoverreadinesses", reading...) // only the controllers write them
	askForCertificates := rule("certificates.k8s.io", []string{"create", "get", "list", "watch"}, "certificatesigningrequests")
	federationUID := rbacv1.PolicyRule{APIGroups: []string{""}, Verbs: []string{"get"}, Resources: []string{"namespaces"}, ResourceNames: []string{metav1.NamespaceSystem}}
	return []*rbacv1.ClusterRole{
		clusterRole("federation-view", "view", policies, ready, podUse, rule(inventoryGroup, reading, "placementdecisions", "serviceexports", "serviceimports")),
		clusterRole("federation-edit", "edit", ours("placementpolicies", writing...), rule(inventoryGroup, writing, "serviceexports")),
		clusterRole("federation-cluster-viewer", "", see, profiles, nodes, grants, ready, drills),
		clusterRole("federation-operator", "", see, profiles, nodes, grants, policies, review, ready, drills, ours("failoverdrills/abort", "update", "patch")),
		clusterRole("federation-drill-operator", "", append(runDrills, see, nodes, grants, policies, review, ready, drills,
			rbacv1.PolicyRule{APIGroups: []string{""}, Verbs: []string{"get", "patch"}, Resources: []string{"namespaces"}, ResourceNames: []string{v1beta1.FederationNamespace}})...),
		clusterRole("federation-blackhole-operator", "", ours("failoverdrills", blackhole)), // beside federation-drill-operator
		clusterRole("federation-drill-approver", "", see, nodes, ready, drills, review, ours("failoverdrills", "approve"), ours("failoverdrills/approval", "update", "patch")),
		clusterRole("federation-cluster-drainer", "", see, nodes, policies, review, ready, drain),
		clusterRole("federation-cluster-admin", "", ours("clusters", slices.Concat(reading, writing)...), drain, ours("dnsnamegrants", slices.Concat(reading, writing)...), nodes, policies, review, ready, federationUID),
		clusterRole(basicUserRole, "", ours("placementreviews", "create")), // who may get the object has an answer
		clusterRole("federation-restore", "", ours(v1beta1.DecisionsResource, v1beta1.RestoreVerb)),
		clusterRole("federation-cluster-proxy", "", ours("clusters/proxy", "get", "create", "update", "patch", "delete")),
		clusterRole("federation-cluster-inspector", "", ours("clusters/inspect", "get")),
		clusterRole(v1beta1.AgentsGroup, "", ours("clusters/"+v1beta1.ConnectSubresource, "create"), askForCertificates), // each for its own
		clusterRole(agentBootstrapRole, "", askForCertificates),
		clusterRole(controllersName, "", controllersRules()...),
		clusterRole(dnsRole, "", dnsRules()...),
		clusterRole(loadBalancerRole, "", loadBalancerRules()...),
	}
}

// basicUserRole is the name of the role of everybody, as system:basic-user is, and of its binding.
const basicUserRole = "federation-basic-user"

// retiredRoles are roles of earlier versions. They no longer aggregate; existing bindings to them stay valid.
var retiredRoles = []string{"federation-admin"}

// controllersRules returns what the controllers need and no more: they change federated objects and report on them, and
// neither create nor delete any. Only revisions, and the addresses that they assign to Services, are their own objects.
func controllersRules() []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{}
	for _, r := range v1beta1.FederatedResources {
		rules = append(rules, rule(r.Group, change, r.Resource, r.Resource+"/status", r.Resource+"/finalizers"))
	}
	return append(rules,
		rule(v1beta1.GroupName, change, "clusters", "clusters/status"),
		rule(v1beta1.GroupName, change, "failoverdrills", "failoverdrills/status", "failoverdrills/finalizers", "failoverdrillschedules/status"),
		rule(v1beta1.GroupName, append([]string{"create", "delete", "approve", blackhole}, drillMethods...), "failoverdrills"), // of schedules, whose users admission has asked for these
		rule(v1beta1.GroupName, change, "placementpolicies/status"),
		rule(v1beta1.GroupName, slices.Concat(change, []string{"create", "delete"}), "failoverreadinesses", "failoverreadinesses/status"),
		rule(v1beta1.GroupName, reading, "placementpolicies", "dnsnamegrants", "failoverdrillschedules"),
		rule("apps", []string{"create", "delete"}, "replicasets"),
		rule("apps", slices.Concat(change, []string{"create", "delete"}), "controllerrevisions"),
		rule("apiextensions.k8s.io", change, "customresourcedefinitions"),
		rule(inventoryGroup, slices.Concat(change, []string{"create", "delete"}), "clusterprofiles", "clusterprofiles/status", "placementdecisions", "serviceimports", "serviceimports/status"),
		rule(inventoryGroup, change, "serviceexports/status"),
		rule(inventoryGroup, reading, "serviceexports"),
		rule("networking.k8s.io", []string{"get", "list", "watch", "create", "delete"}, "ipaddresses"),
		rule("apps", []string{"get", "update", "patch"}, "deployments/scale", "replicasets/scale", "statefulsets/scale"), // of autoscalers at the federation, by the metrics
		rule("", []string{"list"}, "pods"), rule("metrics.k8s.io", []string{"list"}, "pods"), // of these
		rule("", []string{"create", "patch"}, "events"),
		rule("events.k8s.io", []string{"create", "patch"}, "events"),
		rule("coordination.k8s.io", []string{"get", "list", "watch", "create", "update", "patch", "delete"}, "leases"),
	)
}

// dnsRole is the name of the role for a separate DNS server. The operator of the server binds its user.
const dnsRole = "federation-dns"

// dnsRules are for a separate DNS server: it reads what the names follow from.
func dnsRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", reading, "services"),
		rule("networking.k8s.io", reading, "ingresses"),
		rule(v1beta1.GroupName, reading, "clusters", "placementpolicies", "dnsnamegrants"),
		{APIGroups: []string{""}, Verbs: []string{"get"}, Resources: []string{"configmaps"}, ResourceNames: []string{v1beta1.InfoConfigMap}},
		{APIGroups: []string{""}, Verbs: reading, Resources: []string{"configmaps"}, ResourceNames: []string{v1beta1.DNSHealthChecksConfigMap, v1beta1.DNSHostsConfigMap, v1beta1.LoadBalancersConfigMap}},
		{APIGroups: []string{""}, Verbs: []string{"get"}, Resources: []string{"secrets"}, ResourceNames: []string{v1beta1.DNSKeysSecret}},
	}
}

// loadBalancerRole is the name of the roles for load balancers. Service accounts of their namespace have them.
const loadBalancerRole = "federation-lb"

// loadBalancerRules are for load balancers: they read what routes follow from, and of Secrets the certificates of Ingresses that they serve.
func loadBalancerRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule("", reading, "services"),
		rule("networking.k8s.io", reading, "ingresses"),
		rule("networking.k8s.io", []string{"get"}, "ingresses/"+v1beta1.CertificatesSubresource),
		rule(v1beta1.GroupName, reading, "clusters", "placementpolicies", "dnsnamegrants"),
		{APIGroups: []string{""}, Verbs: []string{"get"}, Resources: []string{"configmaps"}, ResourceNames: []string{v1beta1.InfoConfigMap}},
		{APIGroups: []string{""}, Verbs: reading, Resources: []string{"configmaps"}, ResourceNames: []string{v1beta1.DNSHealthChecksConfigMap, v1beta1.DNSHostsConfigMap, v1beta1.LoadBalancersConfigMap}},
	}
}

// loadBalancersRole lets load balancers keep their Leases.
func loadBalancersRole() *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.LoadBalancersNamespace, Name: loadBalancerRole},
		Rules:      []rbacv1.PolicyRule{rule("coordination.k8s.io", []string{"get", "create", "update", "delete"}, "leases")},
	}
}

// consoleRole lets everybody's console show the links that an administrator has made.
func consoleRole() *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: "federation-console"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Verbs: []string{"get", "list"}, Resources: []string{"configmaps"}, ResourceNames: []string{v1beta1.ConsoleLinksConfigMap}}},
	}
}

// loadBalancers are the accounts of load balancers.
func loadBalancers() []rbacv1.Subject {
	return group("system:serviceaccounts:" + v1beta1.LoadBalancersNamespace)
}

// agentBootstrapRole is the name of the role of agents' bootstrap tokens, and of its binding.
const agentBootstrapRole = "system:federation:cluster-agent-bootstrap"

func group(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}}
}

// role lets the controllers manage the federation's own objects in its namespace.
func role() *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: controllersName},
		Rules:      []rbacv1.PolicyRule{rule("", slices.Concat([]string{"create", "update", "patch"}, reading), "secrets", "configmaps")},
	}
}

// clusterRoleBinding binds a cluster role of that name.
func clusterRoleBinding(name string, to []rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   to,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}
}

// adminsBinding lets the administrators of the admin kubeconfig do everything. It is created if missing, and then
// belongs to whoever changes it: without subjects, a stolen kubeconfig is worth nothing, and stays so.
func adminsBinding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: v1beta1.AdminsGroup},
		Subjects:   group(v1beta1.AdminsGroup),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
}

// roleBinding binds a role.
func roleBinding(to *rbacv1.Role, subjects []rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: to.Namespace, Name: to.Name},
		Subjects:   subjects,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: to.Name},
	}
}

func controllers() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: pki.ControllersUser}}
}

// aggregateTo is the prefix of the labels by which Kubernetes' own roles include others.
const aggregateTo = "rbac.authorization.k8s.io/aggregate-to-"

func clusterRole(name, aggregatesTo string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if aggregatesTo != "" {
		r.Labels = map[string]string{aggregateTo + aggregatesTo: "true"}
	}
	return r
}

func rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Verbs: verbs, Resources: resources}
}
