package plan

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"federation/apiserver/apis/federation/v1beta1"
)

// applicable returns an error where an operation speaks of places that RFC 6902 wants to be there and are not. The library replaces, tests and
// copies a missing key as if it were null, and counts negative indices from the end.
func applicable(doc []byte, op v1beta1.JSONPatchOperation) error {
	var root any
	if err := json.Unmarshal(doc, &root); err != nil {
		return err
	}
	switch op.Op {
	case "move", "copy":
		if _, err := at(root, op.From); err != nil {
			return fmt.Errorf("from %s: %w", op.From, err)
		}
	case "remove", "replace", "test":
		_, err := at(root, op.Path)
		return err
	}
	last := strings.LastIndex(op.Path, "/")
	if last < 0 {
		return nil // the whole
	}
	into, err := at(root, op.Path[:last])
	if list, ok := into.([]any); ok && op.Path[last+1:] != "-" {
		_, err = index(op.Path[last+1:], len(list)+1)
	}
	return err
}

// at returns the value that a JSON pointer (RFC 6901) points to.
func at(value any, pointer string) (any, error) {
	if pointer == "" {
		return value, nil
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch v := value.(type) {
		case map[string]any:
			there := false
			if value, there = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]; !there {
				return nil, errNothingThere
			}
		case []any:
			i, err := index(token, len(v))
			if err != nil {
				return nil, err
			}
			value = v[i]
		default:
			return nil, errNothingThere
		}
	}
	return value, nil
}

// index reads an index below n.
func index(token string, n int) (int, error) {
	i, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(i) != token || i < 0 {
		return 0, fmt.Errorf("index %q: must be a number from 0 on, without leading zeros", token)
	}
	if i >= n {
		return 0, errNothingThere
	}
	return i, nil
}
