package consoletest

import (
	"debug/elf"
	"debug/gosym"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const (
	program        = "federation/cmd/federation"
	consolePackage = "federation/apiserver/console"
)

// TestTheBinaryGrowsLittle sums up what the server's program has for the console alone: its files, and all functions of packages that the program would
// not have without it. Acceptance test 24 of the console, with hack/verify-console.sh, which compares vendored files with their checksums.
func TestTheBinaryGrowsLittle(t *testing.T) {
	files := int64(0)
	must(t, fs.WalkDir(os.DirFS("../../apiserver/console/web"), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			files += info.Size()
		}
		return err
	}))
	own := onlyFor(t, consolePackage)
	code, functions := int64(0), 0
	for _, f := range functionsOf(t, bin+"federation") {
		if own[f.PackageName()] {
			code += int64(f.End - f.Entry)
			functions++
		}
	}
	t.Logf("%d bytes of files, %d of %d functions in %d packages", files, code, functions, len(own))
	if functions < 20 || files < 50_000 {
		t.Error("these are too few to be the console")
	}
	if grows := files + code; grows > 1<<20 {
		t.Errorf("the program has %d bytes for the console: at most %d are allowed", grows, 1<<20)
	}
}

// onlyFor returns the packages that the program has because of one of them, and would not have without it.
func onlyFor(t *testing.T, one string) map[string]bool {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, program).Output()
	must(t, err)
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		imports[words[0]] = words[1:]
	}
	reached := map[string]bool{one: true} // as if it imported nothing
	var reach func(path string)
	reach = func(path string) {
		if reached[path] {
			return
		}
		reached[path] = true
		for _, i := range imports[path] {
			reach(i)
		}
	}
	reach(program)
	only := map[string]bool{one: true}
	for path := range imports {
		if !reached[path] {
			only[path] = true
		}
	}
	return only
}

// functionsOf returns the functions of a program, which has a table of them without symbols, too.
func functionsOf(t *testing.T, path string) []gosym.Func {
	t.Helper()
	file, err := elf.Open(path)
	must(t, err)
	defer file.Close()
	lines, err := file.Section(".gopclntab").Data()
	must(t, err)
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, file.Section(".text").Addr))
	must(t, err)
	return table.Funcs
}
