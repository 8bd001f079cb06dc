package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate"
)

// Errors name the flag, its value and what is allowed.
func TestOptionsValidate(t *testing.T) {
	for want, args := range map[string]string{
		"":                       "--cluster east --bootstrap-kubeconfig f --account a/b --cert-secret a/b --server https://fed:6443",
		`--cluster ""`:           "--bootstrap-kubeconfig f",
		`--cluster "East"`:       "--cluster East --bootstrap-kubeconfig f",
		"--bootstrap-kubeconfi":  "--cluster east",
		`--server "http://fed"`:  "--cluster east --bootstrap-kubeconfig f --server http://fed",
		`--cert-dir ""`:          "--cluster east --bootstrap-kubeconfig f --cert-dir=",
		`--account "a"`:          "--cluster east --bootstrap-kubeconfig f --account a",
		`--config-map ""`:        "--cluster east --bootstrap-kubeconfig f --config-map=",
		"--ready-connections 9":  "--cluster east --bootstrap-kubeconfig f --ready-connections 9",
		`--metrics-bind-address`: "--cluster east --bootstrap-kubeconfig f --metrics-bind-address 9155",
	} {
		o := newOptions()
		c := command()
		c.ResetFlags()
		o.addFlags(c.Flags())
		if err := c.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		if err := o.validate(); want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// answers has each request answered with a status.
type answers int

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}

// Who has a token that is not known learns what to do; other answers are the API's.
func TestATokenThatIsNotKnown(t *testing.T) {
	request, err := http.NewRequest(http.MethodPost, "https://fed/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for status, want := range map[answers]string{http.StatusUnauthorized: "kubectl federation token create east", http.StatusForbidden: "", http.StatusCreated: ""} {
		answer, err := withToken{status, "east"}.RoundTrip(request)
		if want == "" && (err != nil || answer.StatusCode != int(status)) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d: %v, want %q", status, err, want)
		}
	}
}

// The Secret keeps key and certificate; as long as it has none, that is known from any other error.
func TestSecretStore(t *testing.T) {
	kube := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "federation-system", Name: "certificate"}})
	s := &secretStore{t.Context(), kube.CoreV1().Secrets("federation-system"), "certificate"}
	var none *certificate.NoCertKeyError
	if _, err := s.Current(); !errors.As(err, &none) {
		t.Errorf("an empty Secret: %v", err)
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("agent", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	put, err := s.Update(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Current()
	if err != nil || !got.Leaf.Equal(put.Leaf) {
		t.Errorf("%v, %v", got, err)
	}
	s.name = "another"
	if _, err := s.Current(); err == nil || errors.As(err, &none) {
		t.Errorf("no Secret: %v", err)
	}
}
