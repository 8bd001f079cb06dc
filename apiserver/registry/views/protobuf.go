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

func (protobufFormat) begin(k *kind, list []byte) (about metav1.ListMeta, at, end int, ok bool) {
	head := envelopeBegin(k)
	data, begins := bytes.CutPrefix(list, head)
	number, wire, n := protowire.ConsumeTag(data)
	if !begins || n < 0 || number != envelopeRaw || wire != protowire.BytesType {
		return about, 0, 0, false
	}
	size, m := protowire.ConsumeVarint(data[n:])
	if m < 0 || size > maxAnswer {
		return about, 0, 0, false
	}
	at = len(head) + n + m
	end = at + int(size) //nolint:gosec // it is no more than maxAnswer
	meta, rest, ok := nextField(list[at:min(end, len(list))], listMetadata)
	if _, known := listMetaForm.Protobuf(meta, nil); !ok || !known || about.Unmarshal(meta) != nil {
		return about, 0, 0, false
	}
	return about, min(end, len(list)) - len(rest), end, true
}

func (protobufFormat) next(k *kind, items []byte, parts []canonical.Part) (of []canonical.Part, n int, last, ok bool) {
	item, rest, ok := nextField(items, listItems)
	if !ok {
		return parts, 0, false, false
	}
	of, ok = k.form.Protobuf(item, parts)
	return of, len(items) - len(rest), false, ok
}

func (protobufFormat) isEnd(rest []byte) bool { return bytes.Equal(rest, envelopeEnd) }

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
	return out.Flush() // it returns the first error of these
}
