package main

import (
	"fmt"
	"go/ast"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// word is what a condition, a reason or an event is called.
var word = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// named are constants that are types of conditions, or reasons, by their names or the names of their types.
var named = regexp.MustCompile(`^(Cluster[A-Z]\w*|Condition[A-Z]\w*|Reason[A-Z]\w*|Event[A-Z]\w*|Readiness[A-Z]\w*|Drill[A-Z]\w*|Policy[A-Z]\w*|Phase[A-Z]\w*)$`)

// reasonFiles have constants that are reasons under any name.
var reasonFiles = []string{"controllers/servicedns/plan/condition.go", "controllers/propagation/plan/summarize.go", "controllers/propagation/plan/credible.go",
	"controllers/clustersetip/plan/decide.go"}

// conditions lists the words of conditions, phases, reasons and events, by the folder that uses them.
func conditions(files []file) string {
	found := map[string]map[string]string{}
	add := func(f file, name, meaning string) {
		folder := filepath.Dir(f.path)
		if found[folder] == nil {
			found[folder] = map[string]string{}
		}
		if found[folder][name] == "" {
			found[folder][name] = meaning
		}
	}
	for _, f := range files {
		constants(f, add)
		events(f, add)
	}
	page := head("Conditions, phases and reasons of events", "constants, and from what is recorded as events,")
	for _, folder := range slices.Sorted(maps.Keys(found)) {
		page += fmt.Sprintf("\n## %s\n\n| word | meaning |\n|---|---|\n", folder)
		for _, name := range slices.Sorted(maps.Keys(found[folder])) {
			page += fmt.Sprintf("| `%s` | %s |\n", name, found[folder][name])
		}
	}
	return page
}

func constants(f file, add func(f file, name, meaning string)) {
	for _, d := range f.Decls {
		for _, spec := range specs(d) {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || len(v.Names) != 1 || len(v.Values) != 1 {
				continue
			}
			if text, ok := literal(v.Values[0]); ok && word.MatchString(text) && v.Names[0].IsExported() &&
				(named.MatchString(v.Names[0].Name) || slices.Contains(reasonFiles, f.path)) {
				add(f, text, meaning(v, d.(*ast.GenDecl).Doc))
			}
		}
	}
}

// meaning is the comment of a constant, without its name; else that of the constants it stands among.
func meaning(v *ast.ValueSpec, all *ast.CommentGroup) string {
	for _, comment := range []*ast.CommentGroup{v.Doc, v.Comment, all} {
		if text := strings.TrimLeft(strings.TrimPrefix(prose(comment), v.Names[0].Name), " ,:"); text != "" {
			return text
		}
	}
	return ""
}

// events are the words that are given to a recorder as they are, and those of Reason fields.
func events(f file, add func(f file, name, meaning string)) {
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 3 && (s.Sel.Name == "Event" || s.Sel.Name == "Eventf") {
				if text, ok := literal(n.Args[2]); ok && word.MatchString(text) {
					add(f, text, "an event")
				}
			} else if ok && s.Sel.Name == "addEvent" && len(n.Args) > 1 {
				if text, ok := literal(n.Args[0]); ok && word.MatchString(text) {
					add(f, text, "an event")
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Reason" {
				if text, ok := literal(n.Value); ok && word.MatchString(text) {
					add(f, text, "")
				}
			}
		}
		return true
	})
}
