package wire

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FuzzDecode: whatever bytes a member sends in protobuf are refused, or become an object that can be held and asked.
func FuzzDecode(f *testing.F) {
	for _, obj := range []runtime.Object{
		&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{"a": "b"}}, Data: map[string][]byte{"k": {1}}},
		&corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {}}},
		&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: 409},
	} {
		f.Add(encoded(f, obj))
	}
	f.Add([]byte("k8s\x00"))
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _, _ = reader{serializer, noManagedFields}.Decode(data, nil, nil) // no panic is what is asked
		obj, kind, err := serializer.Decode(data, nil, nil)
		if err != nil {
			return
		}
		held, err := pack(obj, *kind)
		if p, ok := held.(*packed); ok && err == nil {
			_ = p.OnlyStatusDiffers(held)
			_, _ = p.read()
		}
	})
}
