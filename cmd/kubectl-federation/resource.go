package main

import (
	"fmt"
	"strings"
)

// objectArgs reads KIND/NAME or KIND NAME.
func objectArgs(args []string) (kind, name string, err error) {
	switch len(args) {
	case 1:
		kind, name, _ = strings.Cut(args[0], "/")
	case 2:
		kind, name = args[0], args[1]
	}
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("give one KIND/NAME, as replicaset/web, not %q", strings.Join(args, " "))
	}
	return kind, name, nil
}
