package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRemove(t *testing.T) {
	root := filepath.Join(t.TempDir(), "node")
	if err := os.MkdirAll(filepath.Join(root, "pods", "one"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is gone already
		if err := Remove(root); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(root); !os.IsNotExist(err) {
			t.Errorf("it is still there: %v", err)
		}
	}
}
