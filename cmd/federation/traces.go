package main

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"k8s.io/component-base/tracing"

	"federation/apiserver"
	"federation/controllers/election"
	federationtracing "federation/controllers/tracing"
)

// startTraces has the controllers record what becomes of traced writes, if there is a file of --tracing-config-file, until what it returns
// is called. Spans that cannot be sent are dropped.
func (o *controllersOptions) startTraces(ctx context.Context) (end func(), err error) {
	config, err := apiserver.ReadTracing(o.tracingConfig)
	if err != nil || config == nil {
		return func() {}, err
	}
	about := resource.WithAttributes(attribute.String("service.name", "federation-controllers"), attribute.String("service.instance.id", election.ProcessName()))
	provider, err := tracing.NewProvider(ctx, config, nil, []resource.Option{about})
	if err != nil {
		return nil, err
	}
	o.spans = federationtracing.New(provider)
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = provider.Shutdown(ctx)
	}, nil
}
