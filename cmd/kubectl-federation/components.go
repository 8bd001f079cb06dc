package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

// Component is a failed part of a process, as -o json and yaml print it.
type Component struct {
	// Host is the machine of the process.
	Host      string `json:"host"`
	Component string `json:"component"`
	Restarts  int    `json:"restarts"`
	// Running: it has been restarted.
	Running bool        `json:"running"`
	Since   metav1.Time `json:"since"`
	Message string      `json:"message"`
}

// Components reads the failed parts, by host and name. None if they are not published, or the user may not read them.
func (f *Federation) Components(ctx context.Context) (all []Component, err error) {
	m, err := f.Kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.ComponentsConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		var c Component
		if err := json.Unmarshal([]byte(m.Data[key]), &c); err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s: %s: %w", v1beta1.FederationNamespace, v1beta1.ComponentsConfigMap, key, err)
		}
		c.Host, _, _ = strings.Cut(key, ".")
		all = append(all, c)
	}
	return all, nil
}

func printComponents(out io.Writer, all []Component, now time.Time) {
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
