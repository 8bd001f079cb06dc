package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"federation/apiserver/apis/federation/v1beta1"
)

// maxPatched is the maximum size in bytes of a copy with overrides, and of what they may add: etcd stores no more.
const maxPatched = 3 << 19

// patch is a JSON patch (RFC 6902) in progress. It counts what operations add before they do, so that no number of them
// makes something large or takes long. (The library would count only copies, by a limit for the whole process.)
type patch struct {
	root  any
	added int // bytes
}

func newPatch(root any) *patch { return &patch{root: root} }

// apply applies one operation, only as RFC 6902 allows.
func (p *patch) apply(op v1beta1.JSONPatchOperation) error {
	if op.Path == "" {
		return errors.New("must not be the whole object")
	}
	switch op.Op {
	case "add", "replace", "test":
		if op.Value == nil {
			return errors.New("needs a value")
		}
		var value any
		if err := json.Unmarshal(op.Value.Raw, &value); err != nil {
			return err
		}
		return p.applyValue(op, value, len(op.Value.Raw))
	case "remove":
		return p.edit(op.Path, remove)
	case "copy", "move":
		value, err := valueAt(p.root, op.From)
		if err != nil {
			return fmt.Errorf("from %s: %w", op.From, err)
		}
		if op.Op == "copy" {
			return p.applyValue(op, value, len(JSON(value)))
		}
		if err := p.edit(op.From, remove); err != nil {
			return err
		}
		return p.edit(op.Path, insert(value))
	}
	return fmt.Errorf("no such operation")
}

// equalJSON reports whether two values are equal as RFC 6902 has it: numbers by what they are, however they are written.
func equalJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equalJSON)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equalJSON)
	case int64:
		if b, ok := b.(float64); ok {
			return float64(a) == b
		}
	case float64:
		if b, ok := b.(int64); ok {
			return a == float64(b)
		}
	}
	return a == b
}

// applyValue applies an operation with a value of a given size in bytes.
func (p *patch) applyValue(op v1beta1.JSONPatchOperation, value any, size int) error {
	if op.Op == "test" {
		is, err := valueAt(p.root, op.Path)
		if err == nil && !equalJSON(is, value) {
			return errors.New("another value is there")
		}
		return err
	}
	if p.added += size; p.added > maxPatched {
		return fmt.Errorf("adds %d bytes, with those before %d: overrides may add at most %d bytes", size, p.added, maxPatched)
	}
	if op.Op == "replace" {
		return p.edit(op.Path, replace(value))
	}
	return p.edit(op.Path, insert(runtime.DeepCopyJSONValue(value)))
}

func (p *patch) edit(pointer string, change func(container any, token string) (any, error)) (err error) {
	p.root, err = editContainer(p.root, pointer, change)
	return err
}

func remove(container any, token string) (any, error) {
	if _, err := childAt(container, token); err != nil {
		return nil, err
	}
	if list, ok := container.([]any); ok {
		i, _ := parseIndex(token, len(list)) // as child did
		return slices.Delete(list, i, i+1), nil
	}
	delete(container.(map[string]any), unescape(token))
	return container, nil
}

// replace returns a change that replaces a value.
func replace(value any) func(any, string) (any, error) {
	return func(container any, token string) (any, error) {
		if _, err := childAt(container, token); err != nil {
			return nil, err
		}
		if list, ok := container.([]any); ok {
			i, _ := parseIndex(token, len(list)) // as child did
			list[i] = value
			return list, nil
		}
		container.(map[string]any)[unescape(token)] = value
		return container, nil
	}
}

// insert returns a change that adds a value: to a map, to the end of a list ("-"), or before one of its items.
func insert(value any) func(any, string) (any, error) {
	return func(container any, token string) (any, error) {
		switch c := container.(type) {
		case map[string]any:
			c[unescape(token)] = value
			return c, nil
		case []any:
			if token == "-" {
				return append(c, value), nil
			}
			i, err := parseIndex(token, len(c)+1)
			if err != nil {
				return nil, err
			}
			return slices.Insert(c, i, value), nil
		}
		return nil, errNothingThere
	}
}
