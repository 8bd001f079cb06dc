package validation

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

// The examples in the docs are valid, without a warning.
func TestExamplesOfTheDocs(t *testing.T) {
	var page []byte
	for _, name := range []string{"policies.md", "failover.md", "dns.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		page = append(page, text...)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(examples) < 2 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, example := range examples {
		if bytes.HasPrefix(example[1], []byte("providers:")) {
			continue // a file of its own, which cmd/federation reads
		}
		if bytes.Contains(example[1], []byte("kind: DNSNameGrant\n")) {
			g := &v1beta1.DNSNameGrant{}
			if err := yaml.UnmarshalStrict(example[1], g); err != nil {
				t.Fatalf("%s\n%v", example[1], err)
			}
			if errs := ValidateDNSNameGrant(g); len(errs) > 0 {
				t.Errorf("%s\n%v", example[1], errs.ToAggregate())
			}
			continue
		}
		if bytes.Contains(example[1], []byte("kind: HorizontalPodAutoscaler\n")) {
			a := &autoscalingv2.HorizontalPodAutoscaler{}
			if err := yaml.UnmarshalStrict(example[1], a); err != nil {
				t.Fatalf("%s\n%v", example[1], err)
			}
			if errs := ValidateAnnotations(a.Annotations); len(errs) > 0 {
				t.Errorf("%s\n%v", example[1], errs.ToAggregate())
			}
			continue
		}
		p := &v1beta1.PlacementPolicy{}
		if err := yaml.UnmarshalStrict(example[1], p); err != nil {
			t.Fatalf("%s\n%v", example[1], err)
		}
		if errs := ValidatePlacementPolicy(p); len(errs) > 0 {
			t.Errorf("%s\n%v", example[1], errs.ToAggregate())
		}
		if warnings := WarnOfPlacementPolicy(p); len(warnings) > 0 {
			t.Errorf("%s\n%q", example[1], warnings)
		}
	}
}
