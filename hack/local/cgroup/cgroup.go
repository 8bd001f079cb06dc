// Package cgroup removes cgroups that real nodes have left.
//
//	err := cgroup.Remove("/sys/fs/cgroup/memory/federation-1c432a1c-east-a-node-1")
package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Remove removes a cgroup with those below it; one that is not there is removed already. It fails where processes are in one.
func Remove(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) { // those below first; their files go with them
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
