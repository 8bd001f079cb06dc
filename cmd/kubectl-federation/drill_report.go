package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/drill/report"
)

func newDrillReport(streams genericiooptions.IOStreams) *cobra.Command {
	var t target
	format := "text"
	c := &cobra.Command{
		Use:   "report NAME",
		Short: "Print what a drill has shown",
		Example: `  kubectl federation drill report weekly-47
  kubectl federation drill report weekly-47 -o html > report.html`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: t.completeWith(oneObject(v1beta1.FailoverDrillsResource)),
		RunE: func(c *cobra.Command, args []string) error {
			print, ok := report.Formats[format]
			if !ok {
				return fmt.Errorf("--output %q: must be text, markdown, html, json or junit", format)
			}
			f, err := t.connect()
			if err != nil {
				return err
			}
			d, err := getDrill(c.Context(), f, args[0])
			if err != nil {
				return err
			}
			return print(streams.Out, d)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", format, "text, markdown, html (one file, to print), json, or junit (for a pipeline: it fails if the drill did)")
	_ = c.RegisterFlagCompletionFunc("output", fixedWords("text", "markdown", "html", "json", "junit")) // fails only for a flag that is not there
	t.addFlags(c)
	return c
}
