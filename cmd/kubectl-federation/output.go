package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// output is the flag -o.
type output string

func (o *output) addFlag(c *cobra.Command) {
	c.Flags().StringVarP((*string)(o), "output", "o", "table", "table, json or yaml")
	_ = c.RegisterFlagCompletionFunc("output", fixedWords("table", "json", "yaml")) // fails only for a flag that is not there
}

func (o *output) check() error {
	if !slices.Contains([]output{"table", "json", "yaml"}, *o) {
		return fmt.Errorf("--output %q: must be table, json or yaml", *o)
	}
	return nil
}

// print writes a value for programs.
func (o *output) print(out io.Writer, value any) error {
	marshal := yaml.Marshal
	if *o == "json" {
		marshal = func(v any) ([]byte, error) {
			b, err := json.MarshalIndent(v, "", "  ")
			return append(b, '\n'), err
		}
	}
	b, err := marshal(value)
	if err != nil {
		return err
	}
	_, err = out.Write(b)
	return err
}
