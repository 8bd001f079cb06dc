package fleettest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestEachLawIsCounted: what `make fleet` prints has each law that can be broken, by the name under which it is said to be.
func TestEachLawIsCounted(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	broken, counted := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			switch f := call.Fun.(type) {
			case *ast.Ident:
				if f.Name == "against" || f.Name == "law" {
					broken[nameOfLaw(call.Args[0])] = true
				}
			case *ast.SelectorExpr:
				if f.Sel.Name == "check" {
					counted[nameOfLaw(call.Args[0])] = true
				}
			}
			return true
		})
	}
	if len(broken) < 20 {
		t.Errorf("%d laws are found: %v", len(broken), broken)
	}
	delete(broken, "law") // a variable, of two that are counted
	for law := range broken {
		if !counted[law] {
			t.Errorf("%s is not counted", law)
		}
	}
}

// nameOfLaw is what an argument says: a string, or the name of what has one.
func nameOfLaw(arg ast.Expr) string {
	switch arg := arg.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(arg.Value)
		return text
	case *ast.Ident:
		return arg.Name
	}
	return ""
}
