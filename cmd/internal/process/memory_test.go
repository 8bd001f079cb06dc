package process

import (
	"os"
	"path/filepath"
	"testing"
)

// TestTheLimitOfTheControlGroupIsKnown: the least of those around the process.
func TestTheLimitOfTheControlGroupIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"a unit of systemd":           {map[string]string{"proc/self/cgroup": "0::/system.slice/federation.service\n", "sys/fs/cgroup/system.slice/federation.service/memory.max": "1000\n", "sys/fs/cgroup/system.slice/memory.max": "max\n"}, 1000},
		"a container":                 {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2000\n"}, 2000},
		"less around it":              {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "3000\n", "sys/fs/cgroup/a/memory.max": "500\n"}, 500},
		"no limit":                    {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 0},
		"version 1":                   {map[string]string{"proc/self/cgroup": "5:memory:/a\n"}, 0},
		"it leads out of where it is": {map[string]string{"proc/self/cgroup": "0::/../../x\n", "x/memory.max": "7\n"}, 0},
		"nothing of it is known":      {nil, 0},
		"what is there is no number":  {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "-1\n"}, 0},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			at := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, limited := memoryMax(root); got != c.want || limited != (c.want > 0) {
			t.Errorf("%s: %d, %t; want %d", name, got, limited, c.want)
		}
	}
}
