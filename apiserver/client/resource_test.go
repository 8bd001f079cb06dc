package client

import (
	"strings"
	"testing"
)

func TestKindsAsKubectlTakesThem(t *testing.T) {
	for word, want := range map[string]string{
		"Deployment": "deployment", "deployments.apps": "apps deployment", "widgets.v1.example.org": "example.org/v1 widgets", "widgets.example.org": "example.org widgets",
	} {
		r := asResource(word)
		got := strings.TrimSpace(strings.TrimSuffix(r.Group+"/"+r.Version, "/") + " " + r.Resource)
		if strings.TrimSuffix(got, "s") != strings.TrimSuffix(want, "s") {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
