package process

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestUnchangedMappingsAreOfTheProgram parses the kernel's report of a program whose data were written to.
func TestUnchangedMappingsAreOfTheProgram(t *testing.T) {
	const smaps = `00400000-01439000 r-xp 00000000 fe:00 11036641                           /bin/program
Rss:                1472 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
01439000-0258b000 r--p 01039000 fe:00 11036641                           /bin/program
Anonymous:            16 kB
0258b000-02617000 rw-p 0218b000 fe:00 11036641                           /bin/program
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 11036642                   /bin/other
Anonymous:             0 kB
7f0000002000-7f0000003000 r--p 00000000 00:00 0
Anonymous:             0 kB
`
	file := filepath.Join(t.TempDir(), "smaps")
	if err := os.WriteFile(file, []byte(smaps), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, want := unchangedMappings(f, "/bin/program"), []mapping{{0x400000, 0x1439000}}; !slices.Equal(got, want) {
		t.Errorf("%x, want %x: of the program, not to be written to, no page of it changed", got, want)
	}
}

// TestGivingBackLeavesTheProgramWhole unmaps pages of the test itself while it runs.
func TestGivingBackLeavesTheProgramWhole(t *testing.T) {
	for range 3 {
		GiveBack()
	}
}
