package e2e

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	psaapi "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"

	"federation/apiserver/apis/federation/v1beta1"
)

// podCases are pods that break a control of the level baseline each, or keep within it.
var podCases = map[string]func(*corev1.PodTemplateSpec){
	"plain":       func(*corev1.PodTemplateSpec) {},
	"hostNetwork": func(p *corev1.PodTemplateSpec) { p.Spec.HostNetwork = true },
	"hostPID":     func(p *corev1.PodTemplateSpec) { p.Spec.HostPID = true },
	"hostIPC":     func(p *corev1.PodTemplateSpec) { p.Spec.HostIPC = true },
	"hostPath":    volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
	"emptyDir":    volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}),
	"hostPort": func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	},
	"a port": func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
	},
	"privileged":             container(corev1.SecurityContext{Privileged: new(true)}),
	"unprivileged":           container(corev1.SecurityContext{Privileged: new(false), RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false)}),
	"privileged, before":     initContainer(corev1.SecurityContext{Privileged: new(true)}),
	"capability SYS_ADMIN":   container(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CHOWN", "SYS_ADMIN"}}}),
	"capability ALL, before": initContainer(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"ALL"}}}),
	"capability CHOWN":       container(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CHOWN"}, Drop: []corev1.Capability{"ALL"}}}),
	"procMount, own users": func(p *corev1.PodTemplateSpec) { // other pods cannot have it
		p.Spec.HostUsers = new(false)
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}
	},
	"procMount Default":      container(corev1.SecurityContext{ProcMount: new(corev1.DefaultProcMount)}),
	"seccomp":                container(corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}),
	"seccomp of the pod":     podContext(corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}),
	"seccomp RuntimeDefault": podContext(corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}),
	"AppArmor":               container(corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}),
	"AppArmor of the pod":    podContext(corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}),
	"AppArmor Localhost":     container(corev1.SecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("p")}}),
	"AppArmor by annotation": annotated("container.apparmor.security.beta.kubernetes.io/c", "unconfined"),
	"AppArmor, annotation":   annotated("container.apparmor.security.beta.kubernetes.io/c", "runtime/default"),
	"SELinux type":           container(corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}),
	"SELinux user":           podContext(corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{User: "root"}}),
	"SELinux role":           container(corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Role: "sysadm_r"}}),
	"SELinux container_t":    container(corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "container_t", Level: "s0"}}),
	"sysctl":                 podContext(corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}),
	"sysctl that is safe":    podContext(corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.ipv4.tcp_rmem", Value: "1 2 3"}}}),
	"probe of a host":        readiness(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "10.0.0.1", Port: intstr.FromInt32(80)}}),
	"probe of a host by TCP": readiness(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.1", Port: intstr.FromInt32(80)}}),
	"probe":                  readiness(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}),
	"hook to a host": func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: "10.0.0.1", Port: intstr.FromInt32(80)}}}
	},
}

func container(c corev1.SecurityContext) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].SecurityContext = &c }
}

func initContainer(c corev1.SecurityContext) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) {
		p.Spec.InitContainers = []corev1.Container{{Name: "before", Image: "i", SecurityContext: &c}}
	}
}

func podContext(c corev1.PodSecurityContext) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) { p.Spec.SecurityContext = &c }
}

func volume(v corev1.VolumeSource) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: v}} }
}

func annotated(key, value string) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{key: value} }
}

func readiness(h corev1.ProbeHandler) func(*corev1.PodTemplateSpec) {
	return func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: h} }
}

// TestFencesHoldPodsToBaseline: with the federation's own credential, somebody makes workloads whose pods would take over their node. The member refuses
// what Kubernetes' own evaluation of the level baseline refuses, and nothing else.
func TestFencesHoldPodsToBaseline(t *testing.T) {
	const member = "east-b"
	thief, uid := stolen(t, member)
	evaluator, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := psaapi.LevelVersion{Level: psaapi.LevelBaseline, Version: psaapi.LatestVersion()}
	meta := metav1.ObjectMeta{Name: "pods", Labels: map[string]string{v1beta1.ManagedByLabel: uid}}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	var refused int
	for name, change := range podCases {
		pod := corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "pods"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		change(&pod)
		want := psapolicy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)).Allowed
		_, err := thief.AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod,
		}}, dry)
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, ofJob := thief.BatchV1().CronJobs(ns).Create(t.Context(), &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			Schedule: "0 0 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pod}},
		}}, dry)
		for kind, err := range map[string]error{"Deployment": err, "CronJob": ofJob} {
			if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "--pod-security-level=privileged") {
				t.Errorf("%s, %s: %v, want that it is allowed: %t", name, kind, err, want)
			}
		}
		if !want {
			refused++
		}
	}
	if refused < 20 {
		t.Errorf("%d cases are beyond the level", refused)
	}
}
