package views

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/registry/views/canonical"
)

// walk goes over the items of a list, as far as it has come.
type walk struct {
	kind   *kind
	format format
	each   func([]canonical.Part) bool // false: the list has to be decoded

	about   metav1.ListMeta
	begun   bool
	items   int  // how many bytes of items are to come; -1: what comes after them says it
	another bool // another item must come
	last    bool // only the end may come
	refused bool // the list has to be decoded
	atLeast int  // how many bytes are needed for the next step
	parts   []canonical.Part
}

// over goes over what is whole of data, which is what comes next, and returns what is left of it. An item that is not whole is tried again
// when there is twice as much of it, so that a large one costs no more than twice its length.
func (w *walk) over(data []byte) (left []byte) {
	for !w.refused && !w.last && len(data) >= w.atLeast {
		n, ok := w.step(data)
		if !ok {
			w.atLeast = 2*len(data) + 1
			break
		}
		data, w.atLeast = data[n:], 1
	}
	return data
}

// step goes over the beginning of a list, or an item. It returns how many bytes that takes.
func (w *walk) step(data []byte) (n int, ok bool) {
	if !w.begun {
		about, at, end, ok := w.format.begin(w.kind, data)
		if !ok {
			return 0, false
		}
		w.about, w.begun, w.items = about, true, end
		if end >= 0 {
			w.items, w.last = end-at, end == at
		}
		return at, true
	}
	if w.items >= 0 {
		data = data[:min(w.items, len(data))]
	}
	parts, n, last, ok := w.format.next(w.kind, data, w.parts[:0])
	w.parts = parts
	switch {
	case !ok:
		return 0, false
	case n == 0 && !w.another:
		w.last = true
		return 0, true
	case n == 0 || !w.each(parts):
		w.refused = true
		return 0, false
	}
	w.another = !last
	if w.items >= 0 {
		w.items -= n
		last = w.items == 0
	}
	w.last = last
	return n, true
}

// hasEnded reports whether rest, which was left, ends the list.
func (w *walk) hasEnded(rest []byte) bool {
	return w.last && !w.refused && w.format.isEnd(rest)
}

// copying copies a list while it comes. A goroutine reads the list, and others may say what is wanted of it.
type copying struct {
	ctx    context.Context //nolint:containedctx // of one list
	format format
	wanted atomic.Pointer[wanted] // nil: it is not known yet

	left []byte // of what has come, what has not been walked over
	walk *walk
	part part
}

// reset forgets what has come.
func (c *copying) reset() { c.left, c.walk, c.part = nil, nil, part{} }

// take takes the next bytes of the list.
func (c *copying) take(data []byte) {
	if c.walk != nil && c.walk.refused {
		return
	}
	c.left = append(c.left, data...)
	if before := len(c.left); c.wanted.Load() != nil {
		if left := c.goOn(c.left); len(left) < before {
			c.left = append(c.left[:0], left...)
		}
	}
}

// goOn copies what is whole of data, and returns what is left of it.
func (c *copying) goOn(data []byte) (left []byte) {
	if c.walk == nil {
		w := c.wanted.Load()
		to := newCopier(c.ctx, c.format, w.cluster, w.owners, len(data))
		c.walk = &walk{kind: w.kind, format: c.format, each: func(parts []canonical.Part) bool { return c.part.copy(w, to, parts) }}
	}
	return c.walk.over(data)
}

// finish returns the part once the whole list has come, and forgets it. ok is false of one that has to be decoded.
func (c *copying) finish() (p part, ok bool) {
	defer c.reset() // who read the list may keep c for some time
	if c.walk != nil {
		c.walk.atLeast = 1 // there will be no more
	}
	if left := c.goOn(c.left); !c.walk.hasEnded(left) {
		return part{}, false
	}
	head, err := beginPart(&c.walk.about)
	c.part.version, c.part.next = head.version, head.next
	return c.part, err == nil
}
