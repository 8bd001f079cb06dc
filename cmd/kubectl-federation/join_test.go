package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
)

// Joining again, as with an address at which nobody answers, is no success by what was found at the address of before.
func TestJoinAgainWaitsForACheck(t *testing.T) {
	cluster := func(connection v1beta1.ClusterConnection, status corev1.ConditionStatus, probed time.Duration) *v1beta1.Cluster {
		return &v1beta1.Cluster{
			TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.SchemeGroupVersion.String(), Kind: "Cluster"}, ObjectMeta: metav1.ObjectMeta{Name: "east-a", UID: "1"},
			Spec: v1beta1.ClusterSpec{Connection: connection},
			Status: v1beta1.ClusterStatus{Conditions: []v1beta1.ClusterCondition{{
				Type: v1beta1.ClusterReady, Status: status, Reason: "R", Message: "says so", LastProbeTime: metav1.NewTime(seenAt.Add(probed)),
			}}},
		}
	}
	push, pull, yes, no := v1beta1.ConnectionPush, v1beta1.ConnectionPull, corev1.ConditionTrue, corev1.ConditionFalse
	for name, test := range map[string]struct {
		joined, after *v1beta1.Cluster
		want          string // of the error
	}{
		"the first time":                     {&v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east-a"}}, cluster(push, yes, 0), ""},
		"checked since":                      {cluster(push, yes, 0), cluster(push, yes, time.Second), ""},
		"ready again":                        {cluster(push, no, 0), cluster(push, yes, 0), ""},
		"not checked since":                  {cluster(push, yes, 0), cluster(push, yes, 0), "no check has said"},
		"lost since":                         {cluster(push, yes, 0), cluster(push, no, time.Second), "is not ready after 30s: R: says so"},
		"an agent connects that did already": {cluster(pull, yes, 0), cluster(pull, yes, time.Second), ""},
		"an agent has yet to connect":        {cluster(push, yes, 0), cluster(pull, yes, 0), "no check has said"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scheme := runtime.NewScheme()
				if err := v1beta1.AddToScheme(scheme); err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				o := &joinCommand{sides: sides{timeout: 30 * time.Second}, IOStreams: genericiooptions.IOStreams{Out: &out}}
				err := o.waitReady(t.Context(), &client.Federation{Dynamic: dynamicfake.NewSimpleDynamicClient(scheme, test.after)}, test.joined)
				if test.want == "" && (err != nil || !strings.HasSuffix(out.String(), "joined and is ready\n")) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("%v, %q, want %q", err, out.String(), test.want)
				}
			})
		})
	}
}
