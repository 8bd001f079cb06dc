package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// kinds of metrics, by how the functions that make them begin.
var kinds = []string{"Gauge", "Counter", "Histogram"}

// metrics lists all metrics: those of component-base by their options, and descriptions of collectors.
func metrics(files []file) string {
	rows := map[string]string{}
	for _, f := range files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			made, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !strings.HasPrefix(made.Sel.Name, "New") || len(call.Args) == 0 {
				return true
			}
			if made.Sel.Name == "NewDesc" && len(call.Args) > 2 {
				name, _ := literal(call.Args[0])
				help, _ := literal(call.Args[1])
				rows[name] = row(name, "", labels(call.Args[2]), help)
			}
			for _, kind := range kinds {
				if strings.HasPrefix(made.Sel.Name, "New"+kind) {
					if name, help := options(call.Args[0]); name != "" {
						rows[name] = row(name, strings.ToLower(kind), labels(call.Args[len(call.Args)-1]), help)
					}
				}
			}
			return true
		})
	}
	page := head("Metrics", "the code") + "\n| metric | type | labels | meaning |\n|---|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		page += rows[name]
	}
	return page
}

func row(name, kind string, labels []string, help string) string {
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, kind, strings.Join(labels, ", "), cell(help))
}

// options are the name and the help of &metrics.GaugeOpts{…} and its like; "" where it is none.
func options(e ast.Expr) (name, help string) {
	if u, ok := e.(*ast.UnaryExpr); ok {
		e = u.X
	}
	c, ok := e.(*ast.CompositeLit)
	if !ok {
		return "", ""
	}
	var subsystem string
	for _, element := range c.Elts {
		kv, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		text, _ := literal(kv.Value)
		switch key, _ := kv.Key.(*ast.Ident); key.Name {
		case "Name":
			name = text
		case "Help":
			help = text
		case "Subsystem":
			subsystem = text + "_"
		}
	}
	return subsystem + name, help
}

func labels(e ast.Expr) (names []string) {
	c, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, element := range c.Elts {
		if text, ok := literal(element); ok {
			names = append(names, "`"+text+"`")
		}
	}
	return names
}

// literal is the value of a string that stands in the code, also in several parts.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		a, aOK := literal(e.X)
		b, bOK := literal(e.Y)
		return a + b, aOK && bOK && e.Op == token.ADD
	}
	return "", false
}
