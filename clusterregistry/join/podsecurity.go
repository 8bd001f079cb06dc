package join

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	psa "k8s.io/pod-security-admission/api"
)

// Levels of the Pod Security Standards that pods of the federation may have in a member.
const (
	// Baseline is the default: such pods cannot take over their node.
	Baseline = string(psa.LevelBaseline)
	// Privileged holds them to nothing.
	Privileged = string(psa.LevelPrivileged)
)

// PodSecurityLevels are those that a cluster can join with.
var PodSecurityLevels = []string{Baseline, Privileged}

// checkPodSecurity refuses what is no level.
func checkPodSecurity(level string) error {
	if !slices.Contains(PodSecurityLevels, level) {
		return fmt.Errorf("pod security level %q: must be one of %s", level, strings.Join(PodSecurityLevels, ", "))
	}
	return nil
}

// podVariables say what of an object is a pod template: of Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs and CronJobs.
func podVariables() []admissionv1.Variable {
	return []admissionv1.Variable{
		{Name: "template", Expression: `request.operation == "DELETE" || !(request.resource.group in ["apps", "batch"]) ? null : ` +
			`request.resource.resource == "cronjobs" ? object.spec.?jobTemplate.?spec.?template.orValue(null) : object.spec.?template.orValue(null)`},
		{Name: "pod", Expression: `variables.template == null ? {} : variables.template.?spec.orValue({})`},
		{Name: "containers", Expression: `variables.pod.?containers.orValue([]) + variables.pod.?initContainers.orValue([])`},
		// What a pod and its containers say about security.
		{Name: "contexts", Expression: `[variables.pod.?securityContext.orValue({})] + variables.containers.map(c, c.?securityContext.orValue({}))`},
		{Name: "handlers", Expression: `variables.containers.map(c, c.?livenessProbe.orValue({})) + variables.containers.map(c, c.?readinessProbe.orValue({})) + ` +
			`variables.containers.map(c, c.?startupProbe.orValue({})) + variables.containers.map(c, c.?lifecycle.?postStart.orValue({})) + ` +
			`variables.containers.map(c, c.?lifecycle.?preStop.orValue({}))`},
	}
}

// podValidations hold pod templates to the level baseline of Kubernetes 1.36, whatever level their namespace has: each control of the standard is one of
// them, and allows no more.
func podValidations() (all []admissionv1.Validation) {
	quoted := func(values ...string) string {
		return `["` + strings.Join(values, `", "`) + `"]`
	}
	for _, control := range [][2]string{
		{"host namespaces (hostNetwork, hostPID, hostIPC)", `!variables.pod.?hostNetwork.orValue(false) && !variables.pod.?hostPID.orValue(false) && !variables.pod.?hostIPC.orValue(false)`},
		{"hostPath volumes", `!variables.pod.?volumes.orValue([]).exists(v, has(v.hostPath))`},
		{"host ports", `variables.containers.all(c, c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))`},
		{"privileged containers", `!variables.contexts.exists(c, c.?privileged.orValue(false))`},
		{"host processes of Windows", `!variables.contexts.exists(c, c.?windowsOptions.?hostProcess.orValue(false))`},
		{"capabilities beyond those of the level baseline", `variables.contexts.all(c, c.?capabilities.?add.orValue([]).all(a, a in ` + quoted("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL",
			"MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT") + `))`},
		{"another procMount than Default outside of a user namespace", `!variables.pod.?hostUsers.orValue(true) || variables.contexts.all(c, c.?procMount.orValue("Default") == "Default")`},
		{"seccomp profiles that are Unconfined", `variables.contexts.all(c, c.?seccompProfile.?type.orValue("RuntimeDefault") in ["RuntimeDefault", "Localhost"])`},
		{"AppArmor profiles that are Unconfined", `variables.contexts.all(c, c.?appArmorProfile.?type.orValue("RuntimeDefault") in ["RuntimeDefault", "Localhost"]) && ` +
			`(variables.template == null || variables.template.?metadata.?annotations.orValue({}).all(k, !k.startsWith("container.apparmor.security.beta.kubernetes.io/") || ` +
			`variables.template.metadata.annotations[k] in ["", "runtime/default"] || variables.template.metadata.annotations[k].startsWith("localhost/")))`},
		{"SELinux users, roles or types of their own", `variables.contexts.all(c, c.?seLinuxOptions.?user.orValue("") == "" && c.?seLinuxOptions.?role.orValue("") == "" && c.?seLinuxOptions.?type.orValue("") in ` +
			quoted("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t") + `)`},
		{"sysctls that are not safe", `variables.pod.?securityContext.?sysctls.orValue([]).all(s, s.name in ` + quoted("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
			"net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
			"net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem") + `)`},
		{"hosts in probes and lifecycle hooks", `variables.handlers.all(h, h.?httpGet.?host.orValue("") == "" && h.?tcpSocket.?host.orValue("") == "")`},
	} {
		all = append(all, admissionv1.Validation{
			Expression: "variables.template == null || " + control[1],
			Message:    "the pods use " + control[0] + ", and those of the federation are held to the level baseline here: join the cluster with --pod-security-level=privileged to allow it",
		})
	}
	return all
}
