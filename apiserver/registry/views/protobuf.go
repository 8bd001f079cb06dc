package views

import (
	"bufio"
	"bytes"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/registry/views/canonical"
)

// protobufFormat is Kubernetes' protobuf.
type protobufFormat struct{}

// The numbers of fields that are written here.
const (
	listMetadata, listItems                               = 1, 2
	itemMetadata, itemSpec                                = 1, 2
	metadataName, metadataLabels, metadataOwnerReferences = 1, 11, 13
	labelKey, labelValue                                  = 1, 2
	specNodeName                                          = 10
	envelopeType, envelopeRaw                             = 1, 2
	typeVersion, typeKind                                 = 1, 2
)

var (
	listMetaForm = canonical.Of[metav1.ListMeta]()
	// envelopeEnd are the encoding and the type of the content, which are not used.
	envelopeEnd = []byte{3<<3 | 2, 0, 4<<3 | 2, 0}
)

func (protobufFormat) mediaType() string { return runtime.ContentTypeProtobuf }

// envelopeBegin returns how the envelope of a list begins.
func envelopeBegin(k *kind) []byte {
	of := appendText(appendText(nil, typeVersion, k.resource.GroupVersion().String()), typeKind, k.listKind)
	return appendBytes([]byte("k8s\x00"), envelopeType, of)
}

func (protobufFormat) items(k *kind, body []byte, each func([]canonical.Part) bool) (about metav1.ListMeta, ok bool) {
	body, begins := bytes.CutPrefix(body, envelopeBegin(k))
	list, rest, ok := nextField(body, envelopeRaw)
	if !begins || !ok || !bytes.Equal(rest, envelopeEnd) {
		return about, false
	}
	meta, list, ok := nextField(list, listMetadata)
	if _, known := listMetaForm.Protobuf(meta, nil); !ok || !known || about.Unmarshal(meta) != nil {
		return about, false
	}
	var parts []canonical.Part
	for len(list) > 0 {
		var of []byte
		if of, list, ok = nextField(list, listItems); !ok {
			return about, false
		}
		if parts, ok = k.form.Protobuf(of, parts[:0]); !ok || !each(parts) {
			return about, false
		}
	}
	return about, true
}

// nextField returns the content of the next field, if it is one of bytes with that number, and what comes after it.
func nextField(data []byte, number protowire.Number) (content, rest []byte, ok bool) {
	is, wire, n := protowire.ConsumeTag(data)
	if n < 0 || is != number || wire != protowire.BytesType {
		return nil, nil, false
	}
	content, m := protowire.ConsumeBytes(data[n:])
	if m < 0 {
		return nil, nil, false
	}
	return content, data[n+m:], true
}

func (protobufFormat) text(value []byte) (string, bool) { return string(value), true }

func (protobufFormat) owners(raw []byte) ([]metav1.OwnerReference, error) {
	var of metav1.ObjectMeta
	err := of.Unmarshal(raw)
	return of.OwnerReferences, err
}

func (protobufFormat) appendName(to []byte, name string) []byte {
	return appendText(to, metadataName, name)
}

func (protobufFormat) appendNodeName(to []byte, name string) []byte {
	return appendText(to, specNodeName, name)
}

func (protobufFormat) appendLabel(to []byte, key, value string) []byte {
	return appendBytes(to, metadataLabels, appendText(appendText(nil, labelKey, key), labelValue, value))
}

func (protobufFormat) appendOwners(to []byte, owners []metav1.OwnerReference) ([]byte, error) {
	for i := range owners {
		of, err := owners[i].Marshal()
		if err != nil {
			return nil, err
		}
		to = appendBytes(to, metadataOwnerReferences, of)
	}
	return to, nil
}

func (protobufFormat) appendItem(to []byte, i *item) []byte {
	to = appendMessage(to, itemMetadata, i.before, i.labels, i.after)
	if len(i.spec) > 0 {
		to = appendMessage(to, itemSpec, i.spec)
	}
	for _, part := range i.rest {
		to = append(to, part...)
	}
	return to
}

// appendMessage appends a field with the given ones.
func appendMessage(to []byte, number protowire.Number, of ...[][]byte) []byte {
	size := 0
	for _, parts := range of {
		for _, part := range parts {
			size += len(part)
		}
	}
	to = protowire.AppendVarint(protowire.AppendTag(to, number, protowire.BytesType), uint64(size)) //nolint:gosec // it is not negative
	for _, parts := range of {
		for _, part := range parts {
			to = append(to, part...)
		}
	}
	return to
}

func appendText(to []byte, number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, number, protowire.BytesType), text)
}

func appendBytes(to []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), content)
}

func (protobufFormat) encode(o object) ([]byte, error) { return o.(*corev1.Pod).Marshal() }

func (protobufFormat) write(w io.Writer, k *kind, about *metav1.ListMeta, items [][]byte) error {
	meta, err := about.Marshal()
	if err != nil {
		return err
	}
	list := appendBytes(nil, listMetadata, meta)
	size := len(list)
	for _, of := range items {
		size += protowire.SizeTag(listItems) + protowire.SizeBytes(len(of))
	}
	begin := protowire.AppendTag(envelopeBegin(k), envelopeRaw, protowire.BytesType)
	out := bufio.NewWriterSize(w, flushEach)
	_, _ = out.Write(append(protowire.AppendVarint(begin, uint64(size)), list...)) //nolint:gosec // it is not negative
	for _, of := range items {
		head := protowire.AppendTag(out.AvailableBuffer(), listItems, protowire.BytesType)
		_, _ = out.Write(protowire.AppendVarint(head, uint64(len(of))))
		_, _ = out.Write(of)
	}
	_, _ = out.Write(envelopeEnd)
	return out.Flush() // it says what failed before
}
