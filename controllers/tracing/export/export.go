// Package export sends the spans of controllers by OTLP. It is beside package tracing, so that programs whose controllers record none do not
// link what sends them.
package export

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"

	federationtracing "federation/controllers/tracing"
)

// Start returns what records the spans of a process and sends them, until end is called; nil where there is no configuration. Spans that
// cannot be sent are dropped.
func Start(ctx context.Context, config *tracingapi.TracingConfiguration, process string) (spans *federationtracing.Spans, end func(), err error) {
	if config == nil {
		return nil, func() {}, nil
	}
	about := resource.WithAttributes(attribute.String("service.name", "federation-controllers"), attribute.String("service.instance.id", process))
	provider, err := tracing.NewProvider(ctx, config, nil, []resource.Option{about})
	if err != nil {
		return nil, nil, err
	}
	return federationtracing.New(provider), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = provider.Shutdown(ctx)
	}, nil
}
