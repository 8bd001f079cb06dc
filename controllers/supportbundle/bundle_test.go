package supportbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestWithoutSpecAndValues(t *testing.T) {
	for name, c := range map[string]struct {
		scrub        func(map[string]any)
		object, want string
	}{
		"a workload": {withoutSpec, `{"kind":"Deployment","metadata":{"name":"web"},"spec":{"template":"hunter2"},"status":{"replicas":1},"data":{"a":"hunter2"}}`,
			`{"data":"(left out)","kind":"Deployment","metadata":{"name":"web"},"spec":"(left out)","status":{"replicas":1}}`},
		"a policy": {withoutValues, `{"spec":{"overrides":[{"operations":[{"op":"add","path":"/spec/a","value":{"b":"hunter2"}}]}],"value":["hunter2"]}}`,
			`{"spec":{"overrides":[{"operations":[{"op":"add","path":"/spec/a","value":"(left out)"}]}],"value":"(left out)"}}`},
	} {
		object := map[string]any{}
		if err := json.Unmarshal([]byte(c.object), &object); err != nil {
			t.Fatal(err)
		}
		c.scrub(object)
		if got, _ := json.Marshal(object); string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	got := ownAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "hunter2", "federation.kubernetes.io/placement": "{}", "federationx/a": "hunter2"})
	if text, _ := json.Marshal(got); string(text) != `{"federation.kubernetes.io/placement":"{}","federationx/a":"(left out)","kubectl.kubernetes.io/last-applied-configuration":"(left out)"}` {
		t.Errorf("annotations %s", text)
	}
}

// What cannot be read is in errors.txt, and the rest of the archive is whole.
func TestBundle(t *testing.T) {
	var out bytes.Buffer
	b := newBundle(&out, time.Unix(1000, 0))
	for file, err := range map[string]error{"a.json": nil, "b.json": errors.New("you may not")} {
		if err := b.add(t.Context(), part{file, func(context.Context) ([]byte, error) { return []byte(file), err }}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for files := tar.NewReader(unzipped); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, _ := io.ReadAll(files)
		got = append(got, h.Name+": "+string(content))
	}
	if want := "federation-support/a.json: a.json, federation-support/errors.txt: b.json: you may not\n"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", strings.Join(got, ", "), want)
	}
}
