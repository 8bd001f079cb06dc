package apiserver

import (
	"encoding/json"
	"fmt"

	genericoptions "k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	tracingapi "k8s.io/component-base/tracing/api/v1"
)

// samplingRate is how many of a million writes are traced where the configuration does not say.
const samplingRate int32 = 10000

// TracingUsage is the help of --tracing-config-file.
const TracingUsage = "`FILE` with a TracingConfiguration, as for kube-apiserver: where spans are sent by OTLP, and samplingRatePerMillion (10000 by default). Without it nothing is traced; see docs/operations.md"

// ReadTracing reads the file of --tracing-config-file; nil for "".
func ReadTracing(file string) (*tracingapi.TracingConfiguration, error) {
	if file == "" {
		return nil, nil
	}
	config, err := genericoptions.ReadTracingConfiguration(file)
	if err != nil {
		return nil, fmt.Errorf("--tracing-config-file %q: %w", file, err)
	}
	if errs := tracingapi.ValidateTracingConfiguration(config, utilfeature.DefaultFeatureGate, nil); len(errs) > 0 {
		return nil, fmt.Errorf("--tracing-config-file %q: %w", file, errs.ToAggregate())
	}
	if config.SamplingRatePerMillion == nil {
		config.SamplingRatePerMillion = new(samplingRate)
	}
	return config, nil
}

// tracingFile returns a file for Kubernetes' code to read, in which the defaults are filled in; "" without tracing.
func (c *Config) tracingFile() (string, error) {
	config, err := ReadTracing(c.TracingConfig)
	if err != nil || config == nil {
		return "", err
	}
	content, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration", "endpoint": config.Endpoint, "samplingRatePerMillion": config.SamplingRatePerMillion,
	})
	if err != nil {
		return "", err
	}
	return c.writeFile("tracing.yaml", string(content)+"\n")
}
