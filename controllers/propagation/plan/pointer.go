package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var errNothingThere = errors.New("there is nothing at that path")

// valueAt returns the value at a JSON pointer (RFC 6901).
func valueAt(value any, pointer string) (any, error) {
	if pointer == "" {
		return value, nil
	}
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		var err error
		if value, err = childAt(value, token); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// childAt returns the value at one token of a JSON pointer.
func childAt(value any, token string) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		if item, ok := v[unescape(token)]; ok {
			return item, nil
		}
	case []any:
		i, err := parseIndex(token, len(v))
		if err != nil {
			return nil, err
		}
		return v[i], nil
	}
	return nil, errNothingThere
}

// editContainer lets change replace the container of the value at a JSON pointer, and returns the resulting value. change gets
// the pointer's last token.
func editContainer(value any, pointer string, change func(container any, token string) (any, error)) (any, error) {
	token, rest, more := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	if !more {
		return change(value, token)
	}
	item, err := childAt(value, token)
	if err != nil {
		return nil, err
	}
	if item, err = editContainer(item, rest, change); err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case map[string]any:
		v[unescape(token)] = item
	case []any:
		i, _ := parseIndex(token, len(v)) // as child did
		v[i] = item
	}
	return value, nil
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~").Replace

// parseIndex parses an index below n.
func parseIndex(token string, n int) (int, error) {
	i, err := strconv.Atoi(token)
	if err != nil || strconv.Itoa(i) != token || i < 0 {
		return 0, fmt.Errorf("index %q: must be a number from 0 on, without leading zeros", token)
	}
	if i >= n {
		return 0, errNothingThere
	}
	return i, nil
}
