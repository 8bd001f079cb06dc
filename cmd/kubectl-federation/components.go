package main

import (
	"io"
	"strings"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

func printComponents(out io.Writer, all []v1beta1.FailedComponent, now time.Time) {
	if len(all) == 0 {
		return
	}
	tell(out, "\n")
	w := newTable(out, "FAILED COMPONENT\tHOST\tSTATUS\tRESTARTS\tSINCE\tMESSAGE")
	for _, c := range all {
		status := "Down"
		if c.Running {
			status = "Restarted"
		}
		tell(w, "%s\t%s\t%s\t%d\t%s\t%s\n", c.Component, c.Host, status, c.Restarts, agoOrDash(&c.Since, now), strings.Join(strings.Fields(c.Message), " "))
	}
	w.end()
}
