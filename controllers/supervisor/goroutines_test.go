package supervisor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNoPanicEndsTheProcess reads the source: each goroutine of the process of API and DNS is started by something that
// contains panics.
func TestNoPanicEndsTheProcess(t *testing.T) {
	files := token.NewFileSet()
	n := 0
	for _, dir := range []string{"apiserver", "controllers", "clusterregistry", "dnsprovider", "cmd/federation", "cmd/federation-dns"} {
		err := filepath.WalkDir(filepath.Join("../..", dir), func(path string, d fs.DirEntry, err error) error {
			name := d.Name()
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{"fleettest", "providertest", "servertest", "testdata"}, name):
				return fs.SkipDir
			case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			if path == "../../cmd/federation/main.go" {
				return nil // who waits for signals
			}
			file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				started := startedBy(node)
				if started == nil {
					return true
				}
				if n++; !contained(started) {
					t.Errorf("%s: a panic in this goroutine ends the process: start it with supervisor.Keep, Kept, Protect or Protected", files.Position(node.Pos()))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 50 {
		t.Errorf("%d goroutines are started; this test does not see them all", n)
	}
}

// startedBy returns what a goroutine is started with: the call of a go statement, or the argument of Go of a WaitGroup or an
// errgroup; nil if none is.
func startedBy(node ast.Node) ast.Expr {
	switch s := node.(type) {
	case *ast.GoStmt:
		return s.Call
	case *ast.CallExpr:
		if of, ok := s.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "Go" && len(s.Args) == 1 {
			return s.Args[0]
		}
	}
	return nil
}

// contains are the functions that contain the panics of what they call, or return a function that does.
var contains = []string{"Keep", "Kept", "Protect", "Protected", "Call", "HandleCrashWithContext", "UntilWithContext", "RunWithContext", "ProcessQueue", "part",
	"followProtected", "recover"}

// contained reports whether a goroutine's function calls one of these for all that can panic: at its beginning, or by itself.
func contained(started ast.Expr) bool {
	found := false
	ast.Inspect(started, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			name := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				name = f.Sel.Name
			}
			found = found || slices.Contains(contains, name)
		}
		return !found
	})
	return found
}
