package main

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
