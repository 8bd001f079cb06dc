package views

import (
	"bytes"
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/registry/views/canonical"
)

// copier copies the pods of a member's list as they are shown. It does what kind.show does to decoded ones.
type copier struct {
	ctx     context.Context //nolint:containedctx // of one list
	format  format
	cluster string
	lookup  *lookup
	label   []byte            // of the cluster
	owners  map[string][]byte // as they are shown, by namespace, hash of the template and what the member sent
	chunk   []byte            // copies, one after the other
	size    int               // of the next chunk, in bytes

	item item
	pod  copied
	// made is what was written for a pod, raw the owners that the member sent, and key what they are kept by.
	made, raw, key []byte
}

// copied is what is known of a pod.
type copied struct {
	namespace, name, hash string
	labelled              bool // with its cluster
	ownersAt              int  // the place of its owners among the parts; -1: it has none
}

// maxChunk is the maximum size in bytes of a chunk of copies.
const maxChunk = 1 << 20

func newCopier(ctx context.Context, f format, cluster string, owners *lookup, size int) *copier {
	return &copier{ctx: ctx, format: f, cluster: cluster, lookup: owners, label: f.appendLabel(nil, v1beta1.ClusterLabel, cluster), owners: map[string][]byte{}, size: min(size+4<<10, maxChunk)}
}

// read takes the parts of a pod. It returns false if it has to be decoded.
func (c *copier) read(parts []canonical.Part) bool {
	c.pod, c.made, c.raw = copied{ownersAt: -1}, c.made[:0], c.raw[:0]
	c.item = item{c.item.before[:0], c.item.labels[:0], c.item.after[:0], c.item.spec[:0], c.item.rest[:0]}
	for i := range parts {
		if !c.readPart(&parts[i]) {
			return false
		}
	}
	c.addLabel()
	return true
}

// readPart takes a part of a pod.
func (c *copier) readPart(part *canonical.Part) (ok bool) {
	switch ok = true; part.Path {
	case "metadata.":
		c.item.before = append(c.item.before, part.Raw)
	case "metadata.name":
		if c.pod.name, ok = c.format.text(part.Value); ok {
			c.item.before = append(c.item.before, c.make(c.format.appendName, nameAt(c.pod.name, c.cluster)))
		}
	case "metadata.namespace":
		c.pod.namespace, ok = c.format.text(part.Value)
		c.item.before = append(c.item.before, part.Raw)
	case "metadata.labels":
		ok = c.readLabel(part)
	case "metadata.annotations", "metadata.finalizers":
		c.item.after = append(c.item.after, part.Raw)
	case "metadata.ownerReferences":
		if c.pod.ownersAt < 0 {
			c.pod.ownersAt = len(c.item.after)
			c.item.after = append(c.item.after, nil)
		}
		c.raw = append(c.raw, part.Raw...)
	case "metadata.managedFields":
	case "spec.":
		c.item.spec = append(c.item.spec, part.Raw)
	case "spec.nodeName":
		ok = c.readNodeName(part)
	default:
		c.item.rest = append(c.item.rest, part.Raw)
	}
	return ok
}

// readLabel takes a label. That of the cluster comes at its place.
func (c *copier) readLabel(part *canonical.Part) (ok bool) {
	switch order := bytes.Compare(part.Key, []byte(v1beta1.ClusterLabel)); {
	case order == 0:
		return true
	case order > 0:
		c.addLabel()
	}
	if ok = true; string(part.Key) == appsv1.DefaultDeploymentUniqueLabelKey {
		c.pod.hash, ok = c.format.text(part.Value)
	}
	c.item.labels = append(c.item.labels, part.Raw)
	return ok
}

// addLabel adds the label of the cluster, once.
func (c *copier) addLabel() {
	if !c.pod.labelled {
		c.item.labels = append(c.item.labels, c.label)
	}
	c.pod.labelled = true
}

// readNodeName takes the name of a pod's node.
func (c *copier) readNodeName(part *canonical.Part) (ok bool) {
	node, ok := c.format.text(part.Value)
	if node == "" {
		c.item.spec = append(c.item.spec, part.Raw)
		return ok
	}
	c.item.spec = append(c.item.spec, c.make(c.format.appendNodeName, nameAt(node, c.cluster)))
	return ok
}

// make returns a part that is written here.
func (c *copier) make(write func([]byte, string) []byte, text string) []byte {
	from := len(c.made)
	c.made = write(c.made, text)
	return c.made[from:]
}

// copy returns the pod that was read last, as it is shown. It returns false if it has to be decoded.
func (c *copier) copy() (encoded []byte, ok bool) {
	if c.pod.ownersAt >= 0 {
		if c.item.after[c.pod.ownersAt], ok = c.shownOwners(); !ok {
			return nil, false
		}
	}
	if cap(c.chunk)-len(c.chunk) < c.size/16 {
		c.chunk = make([]byte, 0, c.size)
		c.size = min(2*c.size, maxChunk)
	}
	from := len(c.chunk)
	c.chunk = c.format.appendItem(c.chunk, &c.item)
	return c.chunk[from:len(c.chunk):len(c.chunk)], true
}

// shownOwners returns the owners of the pod that was read last, as they are shown. It returns false if they have to be decoded with the pod.
func (c *copier) shownOwners() (encoded []byte, ok bool) {
	c.key = append(append(append(append(append(c.key[:0], c.pod.namespace...), 0), c.pod.hash...), 0), c.raw...)
	if known, ok := c.owners[string(c.key)]; ok {
		return known, true
	}
	references, err := c.format.owners(c.raw)
	if err != nil {
		return nil, false
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.pod.namespace, OwnerReferences: references}}
	if c.pod.hash != "" {
		pod.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: c.pod.hash}
	}
	c.lookup.setController(c.ctx, pod)
	if encoded, err = c.format.appendOwners(nil, pod.OwnerReferences); err != nil {
		return nil, false
	}
	c.owners[string(c.key)] = encoded
	return encoded, true
}
