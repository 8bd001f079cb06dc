package views

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"federation/apiserver/registry/views/canonical"
)

// jsonFormat is JSON.
type jsonFormat struct{}

func (jsonFormat) mediaType() string { return runtime.ContentTypeJSON }

func (jsonFormat) begin(k *kind, list []byte) (about metav1.ListMeta, at, end int, ok bool) {
	meta, begins := bytes.CutPrefix(list, listBegin(k))
	_, rest, ok := listMetaForm.JSON(meta, nil)
	if !begins || !ok || json.Unmarshal(meta[:len(meta)-len(rest)], &about) != nil {
		return about, 0, 0, false
	}
	items, ok := bytes.CutPrefix(rest, []byte(`,"items":[`))
	return about, len(list) - len(items), -1, ok
}

func (jsonFormat) next(k *kind, items []byte, parts []canonical.Part) (of []canonical.Part, n int, last, ok bool) {
	if items[0] == ']' {
		return parts, 0, true, true
	}
	of, rest, ok := k.form.JSON(items, parts)
	if !ok || len(rest) == 0 {
		return of, 0, false, false
	}
	n = len(items) - len(rest)
	if rest[0] == ',' {
		return of, n + 1, false, true
	}
	return of, n, true, true
}

func (jsonFormat) isEnd(rest []byte) bool {
	return bytes.Equal(bytes.TrimSuffix(rest, []byte("\n")), []byte("]}"))
}

// listBegin returns how a list begins.
func listBegin(k *kind) []byte {
	return []byte(`{"kind":"` + k.listKind + `","apiVersion":"` + k.resource.GroupVersion().String() + `","metadata":`)
}

// text returns what is between the quotation marks, if nothing in it is escaped.
func (jsonFormat) text(value []byte) (string, bool) {
	if len(value) < 2 || bytes.IndexByte(value, '\\') >= 0 {
		return "", false
	}
	return string(value[1 : len(value)-1]), true
}

func (jsonFormat) owners(raw []byte) ([]metav1.OwnerReference, error) {
	var of metav1.ObjectMeta
	err := json.Unmarshal(append(append([]byte{'{'}, raw...), '}'), &of)
	return of.OwnerReferences, err
}

func (jsonFormat) appendName(to []byte, name string) []byte { return appendEntry(to, "name", name) }

func (jsonFormat) appendNodeName(to []byte, name string) []byte {
	return appendEntry(to, "nodeName", name)
}

func (jsonFormat) appendLabel(to []byte, key, value string) []byte {
	return appendEntry(to, key, value)
}

// appendEntry appends an entry of two texts.
func appendEntry(to []byte, key, value string) []byte {
	return appendJSONText(append(appendJSONText(to, key), ':'), value)
}

func appendJSONText(to []byte, text string) []byte {
	written, err := json.Marshal(text)
	if err != nil {
		panic("a text cannot be written: " + err.Error())
	}
	return append(to, written...)
}

func (jsonFormat) appendOwners(to []byte, owners []metav1.OwnerReference) ([]byte, error) {
	written, err := json.Marshal(owners)
	return append(append(to, `"ownerReferences":`...), written...), err
}

func (jsonFormat) appendItem(to []byte, i *item) []byte {
	to = append(to, `{"metadata":{`...)
	to = appendParts(to, i.before)
	to = append(to, `"labels":{`...)
	to = append(endParts(appendParts(to, i.labels)), ',')
	to = append(endParts(appendParts(to, i.after)), ',')
	if len(i.spec) > 0 {
		to = append(endParts(appendParts(append(to, `"spec":{`...), i.spec)), ',')
	}
	return endParts(appendParts(to, i.rest))
}

// appendParts appends parts, with a comma after each.
func appendParts(to []byte, parts [][]byte) []byte {
	for _, part := range parts {
		to = append(append(to, part...), ',')
	}
	return to
}

// endParts ends an object after its last part.
func endParts(to []byte) []byte { return append(bytes.TrimSuffix(to, []byte(",")), '}') }

func (jsonFormat) encode(o object) ([]byte, error) { return json.Marshal(o) }

func (jsonFormat) write(w io.Writer, k *kind, about *metav1.ListMeta, items [][]byte) error {
	meta, err := json.Marshal(about)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, flushEach)
	_, _ = out.Write(listBegin(k))
	_, _ = out.Write(meta)
	_, _ = out.WriteString(`,"items":[`)
	for i, of := range items {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = out.Write(of)
	}
	_, _ = out.WriteString("]}\n")
	return out.Flush() // it returns the first error of these
}
