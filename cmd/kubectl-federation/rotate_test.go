package main

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubefake "k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/clusterregistry/credential"
	"federation/clusterregistry/join"
)

func tokenOf(claims string) []byte {
	return []byte("h." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:federation-system:f","iat":1,"exp":9`+claims+`}`)) + ".s")
}

func TestRotate(t *testing.T) {
	for name, test := range map[string]struct {
		data   map[string][]byte // of the Secret
		leader map[string][]byte // what the leader stores; nil: there is none
		ready  bool
		want   string
	}{
		"well":                    {data: map[string][]byte{"token": tokenOf("")}, leader: map[string][]byte{"token": tokenOf(`,"kubernetes.io":{"secret":{"name":"s"}}`)}, ready: true},
		"not ready":               {data: map[string][]byte{"token": tokenOf("")}, want: "must be ready"},
		"another credential":      {data: map[string][]byte{"kubeconfig": []byte("x")}, ready: true, want: "no token that join made"},
		"nobody leads":            {data: map[string][]byte{"token": tokenOf("")}, ready: true, want: "not replaced within"},
		"joined earlier versions": {data: map[string][]byte{"token": tokenOf("")}, leader: map[string][]byte{"token": tokenOf("")}, ready: true, want: "join it again"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ready(test.ready, "", v1beta1.PhaseServing)
			patch := []byte(`{"spec":{"secretRef":{"name":"cluster-east-a"}}}`)
			if _, err := w.f.Dynamic.Resource(v1beta1.ClustersResource).Patch(t.Context(), "east-a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			core := w.f.Kube.(*kubefake.Clientset)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1beta1.FederationNamespace, Name: "cluster-east-a"}, Data: test.data}
			if err := core.Tracker().Add(secret); err != nil {
				t.Fatal(err)
			}
			core.PrependReactor("get", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
				o, err := core.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), v1beta1.FederationNamespace, "cluster-east-a")
				if err != nil {
					return true, nil, err
				}
				s := o.(*corev1.Secret).DeepCopy()
				if asked := s.Annotations[credential.RotateAnnotation]; asked != "" && test.leader != nil {
					s.Annotations[credential.RotatedAnnotation], s.Data = asked, test.leader
				}
				return true, s, nil
			})
			err := join.RotateToken(t.Context(), w.f, "east-a", time.Second)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A cluster in pull mode has nothing to rotate: --all passes it over, and its name alone is an error.
func TestRotateAllPassesOverPull(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"east-a", "west-a"} {
		patch := []byte(`{"spec":{"connection":"Pull"}}`)
		if _, err := w.f.Dynamic.Resource(v1beta1.ClustersResource).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	o := &rotateCommand{all: true, timeout: time.Second, IOStreams: genericiooptions.IOStreams{Out: &out}}
	if err := o.run(t.Context(), w.f, nil); err != nil || strings.Count(out.String(), "is passed over") != 2 {
		t.Errorf("%v, %q", err, out.String())
	}
	if err := (&rotateCommand{timeout: time.Second}).run(t.Context(), w.f, []string{"east-a"}); err == nil || !strings.Contains(err.Error(), "no credential") {
		t.Errorf("by its name: %v", err)
	}
}
