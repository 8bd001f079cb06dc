package federationinfo

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"federation/apiserver/apis/federation/v1beta1"
)

func TestClaim_KeepsNameAndZone(t *testing.T) {
	prod := v1beta1.Info{Name: "prod", DNSZone: "example.com"}
	there := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: v1beta1.InfoConfigMap}, Data: prod.ConfigMapData()}
	for name, test := range map[string]struct {
		ours v1beta1.Info
		want string // in the error
	}{
		"as before":    {prod, ""},
		"another name": {v1beta1.Info{Name: "test", DNSZone: "example.com"}, `--name "test": must be "prod"`},
		"another zone": {v1beta1.Info{Name: "prod", DNSZone: "example.org"}, `--dns-zone "example.org": must be "example.com"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := Claim(context.Background(), fake.NewClientset(there), test.ours)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
	empty := fake.NewClientset()
	if err := Claim(context.Background(), empty, prod); err != nil {
		t.Fatal(err)
	}
	made, err := empty.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(context.Background(), v1beta1.InfoConfigMap, metav1.GetOptions{})
	if err != nil || made.Data["name"] != "prod" {
		t.Errorf("the first process writes its name down: got %v, %v", made, err)
	}
}
