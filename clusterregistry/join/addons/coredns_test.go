package addons

import (
	"strings"
	"testing"
)

func TestCorefiles(t *testing.T) {
	for name, c := range map[string]struct{ is, want string }{
		"of kubeadm": {
			".:53 {\n    errors\n    ready\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n       pods insecure\n       ttl 30\n    }\n    forward . /etc/resolv.conf\n}\n",
			".:53 {\n    errors\n    ready\n    kubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {\n        multicluster clusterset.local\n       pods insecure\n       ttl 30\n    }\n    forward . /etc/resolv.conf\n}\n",
		},
		"without a block": {
			".:53 {\n\tkubernetes cluster.local in-addr.arpa\n\tcache 5\n}\n",
			".:53 {\n\tkubernetes cluster.local clusterset.local in-addr.arpa {\n\t    multicluster clusterset.local\n\t}\n\tcache 5\n}\n",
		},
		"with another domain": {
			"example.org {\n  kubernetes in-addr.arpa\n}\n. {\n  kubernetes k8s.example.com {\n  }\n}\n",
			"example.org {\n  kubernetes in-addr.arpa\n}\n. {\n  kubernetes k8s.example.com clusterset.local {\n      multicluster clusterset.local\n  }\n}\n",
		},
		"with half of it": {
			". {\n  kubernetes cluster.local {\n    multicluster clusterset.local\n  }\n}\n",
			". {\n  kubernetes cluster.local clusterset.local {\n    multicluster clusterset.local\n  }\n}\n",
		},
	} {
		got, err := withClusterSet(c.is)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, c.want)
		}
		if again, err := withClusterSet(got); err != nil || again != got {
			t.Errorf("%s, the second time: %v\n%s", name, err, again)
		}
	}
	for _, text := range []string{"", ". {\n  forward . 8.8.8.8\n}\n", ". {\n # kubernetes cluster.local\n}\n", ". {\n  kubernetes cluster.local {\n    pods insecure\n"} {
		if got, err := withClusterSet(text); err == nil {
			t.Errorf("%q became %q", text, got)
		}
	}
	if !strings.Contains(CoreDNSHint, "multicluster "+clusterSetDomain) {
		t.Error("the hint says something else")
	}
}
