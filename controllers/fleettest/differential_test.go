package fleettest

import (
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// variant is another way to play a scenario: with commands before it.
type variant struct {
	name, before string
	files        map[string]string
}

var variants = []variant{
	{name: "processes", before: "processes 3"},
	{name: "custom-kind", before: "apply variant-definition.yaml\napply variant-policy.yaml\napply variant-object.yaml", files: map[string]string{
		"variant-definition.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.variant.example.com}
spec:
  group: variant.example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true, storage: true}]
`,
		"variant-policy.yaml": `apiVersion: federation/v1beta1
kind: PlacementPolicy
metadata: {name: variant-widgets, namespace: default}
spec:
  resourceSelectors: [{apiVersion: variant.example.com/v1, kind: Widget}]
`,
		"variant-object.yaml": "apiVersion: variant.example.com/v1\nkind: Widget\nmetadata: {name: w}\n",
	}},
	{name: "late-answers", before: "fed late 5%"},
}

// knownDifferences are the scenarios that come to another end in a variant, "VARIANT/SCENARIO", and why. Each is a defect
// that is known, or what the variant changes by its nature.
var knownDifferences = map[string]string{}

// TestDifferential plays each scenario in ways that must not matter: it must come to the end that its file says.
func TestDifferential(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			scenarios(t, func(t *testing.T, path string, data []byte) {
				if why := knownDifferences[strings.TrimPrefix(t.Name(), "TestDifferential/")]; why != "" {
					t.Skip(why)
				}
				sameEnd(t, data, play(t, v.of(data), nil))
			})
		})
	}
}

// of is the scenario with the commands of the variant before it.
func (v variant) of(data []byte) []byte {
	a := txtar.Parse(data)
	a.Comment = append([]byte(v.before+"\n"), a.Comment...)
	for name, text := range v.files {
		a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text)})
	}
	return txtar.Format(a)
}
