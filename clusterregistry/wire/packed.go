package wire

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"strings"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
)

// packed is an object as a cache keeps it: a ReplicaSet takes 1 KB instead of 13 KB of maps, which the garbage collector
// would walk through again and again. What was unpacked is given out again for as long as anybody has it.
type packed struct {
	types.NamespacedName
	uid        types.UID
	version    string
	source     uint64 // of all in its metadata that not only a status changes; 0: not known
	deleted    *metav1.Time
	finalizers []string
	kind       schema.GroupVersionKind
	data       []byte
	recent     atomic.Pointer[weak.Pointer[unstructured.Unstructured]]
}

// message is what all kinds of Kubernetes' own are.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// pack packs an object of a typed client. One that cannot be packed is made unstructured.
func pack(obj runtime.Object, kind schema.GroupVersionKind) (any, error) {
	about, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	m, ok := obj.(message)
	if !ok {
		return unstructure(obj, kind)
	}
	data, err := m.Marshal()
	if err != nil {
		return unstructure(obj, kind)
	}
	return &packed{
		NamespacedName: types.NamespacedName{Namespace: about.GetNamespace(), Name: about.GetName()},
		uid:            about.GetUID(), version: about.GetResourceVersion(), source: sourceOf(about),
		deleted: about.GetDeletionTimestamp(), finalizers: about.GetFinalizers(), kind: kind, data: data,
	}, nil
}

var seed = maphash.MakeSeed()

// sourceOf sums up what says whether two versions of an object ask for the same. Where a kind counts no generations its
// metadata does not tell: 0.
func sourceOf(o metav1.Object) uint64 {
	if o.GetGeneration() == 0 {
		return 0
	}
	sum := maphash.Comparable(seed, struct {
		generation int64
		deleted    bool
		finalizers string
	}{o.GetGeneration(), o.GetDeletionTimestamp() != nil, strings.Join(o.GetFinalizers(), ",")})
	for _, set := range []map[string]string{o.GetLabels(), o.GetAnnotations()} {
		for k, v := range set { // in any order
			sum += maphash.Comparable(seed, [2]string{k, v})
		}
		sum *= 31 // a label is no annotation
	}
	return sum | 1
}

// OnlyStatusDiffers reports whether it is sure, without unpacking, that another version of the object asks for the same.
func (p *packed) OnlyStatusDiffers(other any) bool {
	was, ok := other.(*packed)
	return ok && p.source != 0 && p.source == was.source && p.uid == was.uid
}

// GetNamespace is as of metav1.Object.
func (p *packed) GetNamespace() string { return p.Namespace }

// GetName is as of metav1.Object.
func (p *packed) GetName() string { return p.Name }

// GetUID is as of metav1.Object.
func (p *packed) GetUID() types.UID { return p.uid }

// GetResourceVersion is as of metav1.Object.
func (p *packed) GetResourceVersion() string { return p.version }

// GetDeletionTimestamp is as of metav1.Object.
func (p *packed) GetDeletionTimestamp() *metav1.Time { return p.deleted }

// GetFinalizers is as of metav1.Object.
func (p *packed) GetFinalizers() []string { return p.finalizers }

// GetObjectMeta implements metav1.ObjectMetaAccessor, as far as stores need it.
func (p *packed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.uid, ResourceVersion: p.version}
}

// Unpack returns the whole object.
func (p *packed) Unpack() *unstructured.Unstructured {
	if w := p.recent.Load(); w != nil {
		if u := w.Value(); u != nil {
			return u
		}
	}
	u, err := p.read()
	if err != nil {
		panic(fmt.Sprintf("what was packed by this process cannot be read: %v", err))
	}
	w := weak.Make(u)
	p.recent.Store(&w)
	return u
}

func (p *packed) read() (*unstructured.Unstructured, error) {
	obj, err := scheme.Scheme.New(p.kind)
	if err != nil {
		return nil, err
	}
	if err := obj.(message).Unmarshal(p.data); err != nil {
		return nil, err
	}
	return unstructure(obj, p.kind)
}

func unstructure(obj runtime.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// unpack gives out what a cache holds.
func unpack(obj any) any {
	switch held := obj.(type) {
	case *packed:
		return held.Unpack()
	case cache.DeletedFinalStateUnknown:
		held.Obj = unpack(held.Obj)
		return held
	}
	return obj
}

// keepMetadata leaves of an object only its metadata, without annotations: among them is what kubectl applied, the whole
// object once more.
func keepMetadata(obj runtime.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		for field := range u.Object {
			if field != "apiVersion" && field != "kind" && field != "metadata" {
				delete(u.Object, field)
			}
		}
		u.SetAnnotations(nil)
		return
	}
	fields := reflect.ValueOf(obj).Elem()
	for i := range fields.NumField() {
		switch m := fields.Field(i).Addr().Interface().(type) {
		case *metav1.TypeMeta:
		case *metav1.ObjectMeta:
			m.Annotations = nil
		default:
			fields.Field(i).SetZero()
		}
	}
}
