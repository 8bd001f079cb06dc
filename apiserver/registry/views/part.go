package views

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/registry/views/canonical"
)

// wanted is what a member was asked for.
type wanted struct {
	kind      *kind
	namespace string          // "": all
	ours      map[string]bool // the namespaces whose objects are shown
	cluster   string
	owners    *lookup
}

// fate is what becomes of an object of a member.
type fate int

const (
	fateShown fate = iota
	fateHidden
	fateDropped // it was not asked for, or is invalid
)

func (w *wanted) fateOf(namespace, name string) fate {
	switch {
	case w.namespace != "" && namespace != w.namespace:
		return fateDropped
	case w.kind.namespaced && !w.ours[namespace]:
		return fateHidden
	case !w.kind.isValid(namespace, name):
		return fateDropped
	}
	return fateShown
}

// beginPart returns the part of a list that has nothing in it yet.
func beginPart(list metav1.ListInterface) (part, error) {
	p := part{version: boundText(list.GetResourceVersion(), maxVersion), next: list.GetContinue()}
	if len(p.next) > maxContinue {
		return part{}, fmt.Errorf("it continues a list with %d bytes: at most %d are taken", len(p.next), maxContinue)
	}
	return p, nil
}

// decoded returns the objects of a member's list as they are shown.
func (w *wanted) decoded(ctx context.Context, list runtime.Object) (part, error) {
	about, err := meta.ListAccessor(list)
	if err != nil || reflect.TypeOf(list) != reflect.TypeOf(w.kind.makeList()) {
		return part{}, fmt.Errorf("it sends %T", list)
	}
	p, err := beginPart(about)
	if err != nil {
		return part{}, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return part{}, err
	}
	p.items, p.sent = make([]shown, 0, len(items)), len(items)
	for _, item := range items {
		o, ok := item.(object)
		if !ok {
			p.dropped++
			continue
		}
		switch w.fateOf(o.GetNamespace(), o.GetName()) {
		case fateDropped:
			p.dropped++
		case fateShown:
			w.kind.show(ctx, o, w.cluster, w.owners)
			p.items = append(p.items, shown{o.GetNamespace(), o.GetName(), o, nil})
		}
	}
	return p, nil
}

// copied returns the objects of a list as they are shown, in its format, without decoding them. ok is false for one that has to be decoded.
func (w *wanted) copied(ctx context.Context, list []byte, f format) (p part, ok bool) {
	c := &copying{ctx: ctx, format: f}
	c.wanted.Store(w)
	c.take(list)
	return c.finish()
}

// copy adds an item to the part, as it is shown. It returns false if it has to be decoded.
func (p *part) copy(w *wanted, c *copier, item []canonical.Part) (ok bool) {
	if p.sent++; !c.read(item) {
		return false
	}
	switch w.fateOf(c.pod.namespace, c.pod.name) {
	case fateDropped:
		p.dropped++
	case fateShown:
		encoded, ok := c.copy()
		p.items = append(p.items, shown{c.pod.namespace, nameAt(c.pod.name, w.cluster), nil, encoded})
		return ok
	}
	return true
}

// encode encodes the objects of a part.
func (p *part) encode(f format) (err error) {
	for i := range p.items {
		if p.items[i].encoded, err = f.encode(p.items[i].object); err != nil {
			return err
		}
		p.items[i].object = nil
	}
	return nil
}
