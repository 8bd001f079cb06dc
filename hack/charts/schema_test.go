package charts

import (
	"strings"
	"testing"
)

// wrong are settings that a chart's schema refuses, with the field that the error names.
var wrong = map[string][]struct{ set, names string }{
	"federation": {
		{`federation.dnsZone=`, "/federation/dnsZone"},
		{`federation.dnsZone=Example_com`, "/federation/dnsZone"},
		{`federation.name=a.b`, "/federation/name"},
		{`federation.name=`, "/federation/name"},
		{`federation.title=x`, "title"},
		{`image.repository=`, "/image/repository"},
		{`image.repository=UPPER/x`, "/image/repository"},
		{`image.tag=a b`, "/image/tag"},
		{`image.digest=sha256:12`, "/image/digest"},
		{`image.pullPolicy=Sometimes`, "/image/pullPolicy"},
		{`image.registry=x`, "registry"},
		{`layout=Both`, "/layout"},
		{`replicas=0`, "/replicas"},
		{`replicas=two`, "/replicas"},
		{`replicas=3`, "/etcd/servers"},
		{`etcd.servers={http://etcd:2379}`, "/etcd/servers/0"},
		{`etcd.servers={https://etcd:2379}`, "/pki/secretName"},
		{`etcd.embedded=true`, "embedded"},
		{`pki.secretName=A_B`, "/pki/secretName"},
		{`persistence.size=much`, "/persistence/size"},
		{`persistence.keep=yes please`, "/persistence/keep"},
		{`api.tlsNames={https://fed}`, "/api/tlsNames/0"},
		{`api.auditLogPath=/etc/x`, "/api/auditLogPath"},
		{`api.service.type=ExternalName`, "/api/service/type"},
		{`api.service.port=70000`, "/api/service/port"},
		{`api.service.loadBalancerSourceRanges={all}`, "/api/service/loadBalancerSourceRanges/0"},
		{`dns.nameServerIPs={ns.example.com}`, "/dns/nameServerIPs/0"},
		{`apiserver.extraArgs={--data-dir=/x}`, "/apiserver/extraArgs/0"},
		{`apiserver.extraArgs={rm -rf}`, "/apiserver/extraArgs/0"},
		{`controllers.extraArgs={--name=other}`, "/controllers/extraArgs/0"},
		{`controllers.files.dns-providers.key=x`, "/controllers/files/dns-providers"},
		{`controllers.files.dns-providers.secretName=x`, "/controllers/files/dns-providers"},
		{`serve.resources.limits.memory=lots`, "/serve/resources/limits/memory"},
		{`dnsServers.enabled=true`, "/dnsServers/image/repository"},
		{`podMonitor.enabled=true`, "/podMonitor/tokenSecretName"},
		{`podDisruptionBudget.maxUnavailable=0`, "/podDisruptionBudget/maxUnavailable"},
		{`networkPolicy.enabled=1`, "/networkPolicy/enabled"},
		{`nodeSelector.a=1`, "/nodeSelector/a"},
		{`extraArgs={--v=2}`, "extraArgs"},
	},
	"federation-lb": {
		{`image.repository=`, "/image/repository"},
		{`image.repository=UPPER/x`, "/image/repository"},
		{`image.tag=a b`, "/image/tag"},
		{`image.digest=sha256:12`, "/image/digest"},
		{`image.pullPolicy=Sometimes`, "/image/pullPolicy"},
		{`image.registry=x`, "registry"},
		{`kubeconfigSecretName=`, "/kubeconfigSecretName"},
		{`kubeconfigSecretName=A_B`, "/kubeconfigSecretName"},
		{`kubeconfig=x`, "kubeconfig"},
		{`replicas=0`, "/replicas"},
		{`region=a/b`, "/region"},
		{`zone=-a`, "/zone"},
		{`addresses={lb.example.com}`, "/addresses/0"},
		{`service.type=ExternalName`, "/service/type"},
		{`service.ports.http=70000`, "/service/ports/http"},
		{`service.ports.http=0,service.ports.https=0`, "/service/ports"},
		{`service.ports.grpc=1`, "grpc"},
		{`service.externalTrafficPolicy=Some`, "/service/externalTrafficPolicy"},
		{`service.loadBalancerSourceRanges={all}`, "/service/loadBalancerSourceRanges/0"},
		{`drain.delaySeconds=15s`, "/drain/delaySeconds"},
		{`drain.timeoutSeconds=-1`, "/drain/timeoutSeconds"},
		{`extraArgs={--drain-delay=1s}`, "/extraArgs/0"},
		{`extraArgs={--addresses=192.0.2.1}`, "/extraArgs/0"},
		{`extraArgs={rm -rf}`, "/extraArgs/0"},
		{`files.upstream-ca-file.key=x`, "/files/upstream-ca-file"},
		{`files.kubeconfig.key=x,files.kubeconfig.secretName=x`, "kubeconfig"},
		{`resources.limits.memory=lots`, "/resources/limits/memory"},
		{`serviceAccount.create=true`, "create"},
		{`networkPolicy.enabled=1`, "/networkPolicy/enabled"},
		{`podDisruptionBudget.maxUnavailable=0`, "/podDisruptionBudget/maxUnavailable"},
		{`podMonitor.interval=often`, "/podMonitor/interval"},
		{`nodeSelector.a=1`, "/nodeSelector/a"},
		{`hostNetwork=true`, "hostNetwork"},
	},
	"federation-member": {
		{`nodeAgent.enabled=false`, "enabled"},
		{`nodeAgent.image.repository=`, "/nodeAgent/image/repository"},
		{`nodeAgent.apiServer.host=`, "/nodeAgent/apiServer/host"},
		{`nodeAgent.apiServer.host=https://api`, "/nodeAgent/apiServer/host"},
		{`nodeAgent.apiServer.port=0`, "/nodeAgent/apiServer/port"},
		{`nodeAgent.mode=ipvs`, "/nodeAgent/mode"},
		{`nodeAgent.scope=some`, "/nodeAgent/scope"},
		{`nodeAgent.mode=iptables`, "/nodeAgent/mode"}, // beside blackhole: true
		{`nodeAgent.scope=federated`, "/nodeAgent/scope"},
		{`nodeAgent.clusterCIDR={10.0.0.0/8}`, "/nodeAgent/clusterCIDR"},
		{`nodeAgent.detectLocalMode=ClusterCIDR`, "/nodeAgent/clusterCIDR"},
		{`nodeAgent.detectLocalMode=Guess`, "/nodeAgent/detectLocalMode"},
		{`nodeAgent.clusterSetIPRanges={10.0.0.0}`, "/nodeAgent/clusterSetIPRanges/0"},
		{`nodeAgent.federationUIDs={prod}`, "/nodeAgent/federationUIDs/0"},
		{`nodeAgent.goMemoryLimit=448Mi`, "/nodeAgent/goMemoryLimit"},
		{`nodeAgent.extraArgs={--proxy-mode=iptables}`, "/nodeAgent/extraArgs/0"},
		{`nodeAgent.privileged=true`, "privileged"},
		{`mode=nftables`, "mode"},
		{`agent.enabled=true`, "/agent/image/repository"},
		{`agent.enabled=true,agent.image.repository=x`, "/agent/cluster"},
		{`agent.enabled=true,agent.image.repository=x,agent.cluster=a`, "/agent/federationUID"},
		{`agent.cluster=East`, "/agent/cluster"},
		{`agent.federationUID=prod`, "/agent/federationUID"},
		{`agent.image.digest=sha256:12`, "/agent/image/digest"},
		{`agent.bootstrapSecretName=`, "/agent/bootstrapSecretName"},
		{`agent.servers={http://fed:6443}`, "/agent/servers/0"},
		{`agent.servers={https://user@fed}`, "/agent/servers/0"},
		{`agent.replicas=0`, "/agent/replicas"},
		{`agent.extraArgs={--account=kube-system/admin}`, "/agent/extraArgs/0"},
		{`agent.extraArgs={--server=https://x}`, "/agent/extraArgs/0"},
		{`agent.resources.limits.memory=lots`, "/agent/resources/limits/memory"},
		{`agent.token=abcdef.0123456789abcdef`, "token"},
	},
}

// TestSchemaRefuses what is wrong, and the error names the field.
func TestSchemaRefuses(t *testing.T) {
	built := helms(t)
	values := map[string]string{"federation": "testdata/federation/one.yaml", "federation-lb": "testdata/federation-lb/one.yaml", "federation-member": "testdata/federation-member/nftables.yaml"}
	for chart, settings := range wrong {
		for _, w := range settings {
			_, said, err := run(built[len(built)-1], "template", "federation", chart, "-n", namespaces[chart], "-f", values[chart], "--set", w.set)
			if err == nil || !strings.Contains(said, "schema") || !strings.Contains(said, w.names) {
				t.Errorf("%s --set %q: %v: %q, want an error of the schema that names %s", chart, w.set, err, said, w.names)
			}
		}
	}
	for chart, set := range map[string]string{"federation": "podMonitor.enabled=true,podMonitor.tokenSecretName=x,dnsServers.enabled=true,dnsServers.image.repository=x,dnsServers.kubeconfigSecretName=x", "federation-lb": "podMonitor.enabled=true"} {
		args := []string{"template", "x", chart, "-n", namespaces[chart], "-f", values[chart], "--set", set, "--set"}
		if _, said, err := run(built[len(built)-1], append(args, "networkPolicy.enabled=true")...); err == nil || !strings.Contains(said, "networkPolicy.metricsFrom is empty") {
			t.Errorf("%s whose metrics nobody reaches: %v: %s", chart, err, said)
		}
		if _, said, err := run(built[len(built)-1], append(args, "networkPolicy.enabled=false")...); err != nil {
			t.Errorf("%s without a NetworkPolicy: %v: %s", chart, err, said)
		}
	}
	if _, said, err := run(built[len(built)-1], "template", "x", "federation-member", "-n", "default", "-f", values["federation-member"]); err == nil || !strings.Contains(said, "must be federation-system") {
		t.Errorf("federation-member in the namespace default: %v: %s", err, said)
	}
}
