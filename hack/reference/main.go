// Command reference writes docs/reference from the code: the flags of each program, the fields of the API, conditions and
// event reasons, and metrics.
//
//	go run ./hack/reference -bin _output/bin -out docs/reference
//
// It reads the sources, so a name and its comment are all that it needs; flags it asks of the programs themselves.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const apiFolder = "apiserver/apis/federation/v1beta1"

// roots are the folders whose code users see something of.
var roots = []string{"apiserver", "clusterregistry", "controllers", "dnsprovider", "nodeagent", "cmd"}

// left are folders below them with nothing that runs in a federation.
var left = []string{"testdata", "fleettest", "servertest", "providertest", "nettest"}

func main() {
	bin := flag.String("bin", "_output/bin", "`FOLDER` with the programs")
	out := flag.String("out", "docs/reference", "`FOLDER` that is written")
	flag.Parse()
	if err := write(*bin, *out); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(bin, out string) error {
	files, err := parse()
	if err != nil {
		return err
	}
	pages := map[string]string{"api.md": api(files), "conditions.md": conditions(files), "metrics.md": metrics(files)}
	for _, program := range []string{"federation", "federation-agent", "federation-dns", "federation-lb", "federation-nodeagent", "kubectl-federation"} {
		if pages[program+".md"], err = commands(filepath.Join(bin, program)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// file is a source file and where it is.
type file struct {
	path string
	*ast.File
}

// parse reads all sources but tests and generated ones, sorted by path.
func parse() (files []file, err error) {
	set := token.NewFileSet()
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			switch name := d.Name(); {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains(left, name):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_"):
				return nil
			}
			f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			files = append(files, file{path, f})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	return files, nil
}

// prose is a comment as a cell of a table: in one line, without markers for generators.
func prose(comment *ast.CommentGroup) string {
	var lines []string
	for line := range strings.Lines(comment.Text()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	return cell(strings.TrimSpace(strings.Join(lines, " ")))
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", `\<`, "*", `\*`).Replace(text)
}

func head(title, from string) string {
	return fmt.Sprintf("# %s\n\nMade from %s by `hack/update-docs.sh`; `make verify` fails where it is stale.\n", title, from)
}
