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

func (jsonFormat) items(k *kind, body []byte, each func([]canonical.Part) bool) (about metav1.ListMeta, ok bool) {
	body, begins := bytes.CutPrefix(body, listBegin(k))
	_, list, ok := listMetaForm.JSON(body, nil)
	if !begins || !ok || json.Unmarshal(body[:len(body)-len(list)], &about) != nil {
		return about, false
	}
	list, begins = bytes.CutPrefix(list, []byte(`,"items":[`))
	list, ends := bytes.CutSuffix(bytes.TrimSuffix(list, []byte("\n")), []byte("]}"))
	if !begins || !ends {
		return about, false
	}
	var parts []canonical.Part
	for len(list) > 0 {
		if parts, list, ok = k.form.JSON(list, parts[:0]); !ok || !each(parts) {
			return about, false
		}
		if len(list) == 0 {
			break
		}
		if list, ok = bytes.CutPrefix(list, []byte(",")); !ok || len(list) == 0 {
			return about, false
		}
	}
	return about, true
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
	return out.Flush() // it says what failed before
}
