package main

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

func TestGCPercent(t *testing.T) {
	for _, c := range []struct {
		live int64 // MiB
		want int
	}{{0, 400}, {32, 400}, {64, 200}, {128, 100}, {256, 50}, {1000, 50}} {
		if got := gcPercent(c.live << 20); got != c.want {
			t.Errorf("%d MiB live: %d %%, want %d", c.live, got, c.want)
		}
	}
}

func TestAQuietProcessGivesMemoryBack(t *testing.T) {
	for _, c := range []struct {
		name                        string
		live, held, free, allocated int64 // MiB
		want                        bool
	}{
		{"quiet, and holds garbage", 100, 170, 0, 1, true},
		{"quiet, and holds pages", 100, 100, 70, 1, true},
		{"quiet, and holds a little of both", 100, 120, 20, 1, true},
		{"quiet, and holds little", 100, 110, 10, 1, false},
		{"busy", 100, 200, 100, 100, false},
	} {
		now := memory{c.live << 20, c.held << 20, c.free << 20, (1000 + c.allocated) << 20}
		if got := now.givesBack(memory{allocated: 1000 << 20}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if m := lookAtMemory(); m.held <= 0 || m.allocated < m.held {
		t.Errorf("a look shows %+v", m)
	}
}
