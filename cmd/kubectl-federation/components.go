package main

import (
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

func printComponents(out io.Writer, all []v1beta1.FailedComponent, now time.Time) {
	if len(all) == 0 {
		return
	}
	tell(out, "\n")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	tell(w, "FAILED COMPONENT\tHOST\tSTATUS\tRESTARTS\tSINCE\tMESSAGE\n")
	for _, c := range all {
		status := "Down"
		if c.Running {
			status = "Restarted"
		}
		tell(w, "%s\t%s\t%s\t%d\t%s\t%s\n", c.Component, c.Host, status, c.Restarts, agoOrDash(&c.Since, now), strings.Join(strings.Fields(c.Message), " "))
	}
	_ = w.Flush() // nobody reads the error
}
