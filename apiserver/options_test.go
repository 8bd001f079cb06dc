package apiserver

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestCompleteNamesFlagValueAndWhatIsAllowed(t *testing.T) {
	for args, want := range map[string][]string{
		"--data-dir=":                                    {`--data-dir ""`, "folder"},
		"--data-dir=options_test.go":                     {"options_test.go", "is a file"},
		"--bind-address=localhost":                       {`--bind-address "localhost"`, "IP address"},
		"--secure-port=70000":                            {"--secure-port 70000", "65535"},
		"--tls-san=a_b":                                  {`--tls-san "a_b"`, "host name"},
		"--etcd-servers=etcd:2379":                       {`--etcd-servers "etcd:2379"`, "URL"},
		"--etcd-servers=http://192.0.2.1:2379":           {"must be https"},
		"--etcd-cafile=options_test.go":                  {"--etcd-cafile", "--etcd-servers only"},
		"--etcd-servers=https://e:1 --etcd-certfile=x":   {"--etcd-keyfile", "together", "must be a file"},
		"--audit-policy-file=/nowhere":                   {`--audit-policy-file "/nowhere"`, "must be a file"},
		"--audit-log-maxage=-1 --audit-log-path=-":       {"audit-log-maxage", "-1"},
		"--enable-admission-plugins=PodSecurity":         {`"PodSecurity"`, "EventRateLimit, DenyServiceExternalIPs"},
		"--enable-admission-plugins=EventRateLimit":      {"--admission-control-config-file"},
		"--service-account-max-token-expiration=5m":      {"--service-account-max-token-expiration 5m0s", "at least 1h"},
		"--authorization-config=options_test.go":         {`--authorization-config "options_test.go"`},
		"--authorization-config=testdata/no-rbac.yaml":   {"RBAC"},
		"--bind-address=x --secure-port=-1 --tls-san=a,": {"--bind-address", "--tls-san"},
	} {
		o := NewOptions()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(flags)
		if err := flags.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		_, err := o.Complete()
		if err == nil {
			t.Errorf("%s: accepted", args)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", args, err, part)
			}
		}
	}
	if _, err := NewOptions().Complete(); err != nil {
		t.Errorf("defaults: %v", err)
	}
}
