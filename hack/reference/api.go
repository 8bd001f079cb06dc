package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

// api lists the types of the API, with the fields that have a name in JSON, in the order of the sources.
func api(files []file) string {
	page := head("API: federation/v1beta1", "`"+apiFolder+"`")
	for _, f := range files {
		if filepath.Dir(f.path) != apiFolder {
			continue
		}
		for _, d := range f.Decls {
			for _, spec := range specs(d) {
				if t, ok := spec.(*ast.TypeSpec); ok {
					page += structure(t, d.(*ast.GenDecl).Doc)
				}
			}
		}
	}
	return page
}

func specs(d ast.Decl) []ast.Spec {
	if g, ok := d.(*ast.GenDecl); ok {
		return g.Specs
	}
	return nil
}

// structure is a type with its fields; "" where it has none.
func structure(t *ast.TypeSpec, doc *ast.CommentGroup) (text string) {
	s, ok := t.Type.(*ast.StructType)
	if !ok || !t.Name.IsExported() || strings.HasSuffix(t.Name.Name, "List") {
		return ""
	}
	for _, field := range s.Fields.List {
		if field.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			continue
		}
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		required := map[bool]string{true: "", false: "required"}[strings.Contains(options, "omitempty")]
		text += fmt.Sprintf("| `%s` | `%s` | %s | %s |\n", name, types.ExprString(field.Type), required, prose(field.Doc))
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf("\n## %s\n\n%s\n\n| field | type | | meaning |\n|---|---|---|---|\n%s", t.Name.Name, prose(doc), text)
}
