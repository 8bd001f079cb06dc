// Command sbom prints what a program is made of, as a CycloneDX document in JSON: each module that is linked into it, as the Go toolchain wrote
// it into the program. The same program gives the same document.
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM VERSION")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err == nil {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(billOf(info, os.Args[2]))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// bill is the part of CycloneDX 1.5 that is used. It has no time and no random serial number.
type bill struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    metadata    `json:"metadata"`
	Components  []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// billOf is the bill of a program of a version.
func billOf(info *debug.BuildInfo, version string) bill {
	name := path.Base(info.Path)
	about := component{Type: "application", Ref: name + "@" + version, Name: name, Version: version}
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "vcs.") || s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			about.Properties = append(about.Properties, property{s.Key, s.Value})
		}
	}
	all := []component{library("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, library(m.Path, m.Version, m.Sum))
	}
	slices.SortFunc(all, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	return bill{"CycloneDX", "1.5", 1, metadata{about}, all}
}

// library is a module. Its checksum is that of go.sum, which is of all its files and not of one archive.
func library(module, version, sum string) component {
	purl := "pkg:golang/" + module + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := component{Type: "library", Ref: purl, Name: module, Version: version, PURL: purl}
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}
