package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"federation/nodeagent/ruleset"
)

func traceCommand(o *options) *cobra.Command {
	var from, to, protocol, iface string
	c := &cobra.Command{
		Use:   "trace --from ADDRESS --to ADDRESS:PORT",
		Short: "Say where a connection would go, and why",
		Long: `Read what the API server has and say, step by step, where the first packet of a connection goes on this node: which
Service has the address, which policy and which endpoints decide, and what source address the endpoint sees.

It changes nothing and needs no rights on the node. Give it the flags that the agent has: --proxy-mode, too,
as at which addresses node ports are served depends on it.`,
		Args: cobra.NoArgs, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := parsePacket(from, to, protocol, iface)
			if err != nil {
				return err
			}
			m, err := o.readModel(c.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), strings.Join(m.Trace(p).Steps, "\n"))
			return err
		},
	}
	c.Flags().StringVar(&from, "from", "", "`ADDRESS` that the connection is from")
	c.Flags().StringVar(&to, "to", "", "`ADDRESS:PORT` that it is to")
	c.Flags().StringVar(&protocol, "protocol", "tcp", "tcp, udp or sctp")
	c.Flags().StringVar(&iface, "interface", "", "`NAME` of the interface that it comes in by, where pods are known by that")
	completeWith(c, "protocol", "tcp", "udp", "sctp")
	_ = c.MarkFlagRequired("from") // the flag is there
	_ = c.MarkFlagRequired("to")
	return c
}

func parsePacket(from, to, protocol, iface string) (ruleset.Packet, error) {
	p := ruleset.Packet{Interface: iface, Protocol: corev1.Protocol(strings.ToUpper(protocol))}
	var err error
	if p.From, err = netip.ParseAddr(from); err != nil {
		return p, fmt.Errorf("--from %q: want an address like 10.180.2.7", from)
	}
	if p.To, err = netip.ParseAddrPort(to); err != nil {
		return p, fmt.Errorf("--to %q: want an address and port like 10.0.147.93:9200 or [fd00::1]:80", to)
	}
	return p, nil
}

// readModel returns the model of the API server's present objects.
func (o *options) readModel(ctx context.Context) (*ruleset.Model, error) {
	if err := o.checkWatch(); err != nil {
		return nil, err
	}
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	name, err := o.nodeName()
	if err != nil {
		return nil, err
	}
	var n corev1.Node
	err = client.core.Get().Resource("nodes").Name(name).Do(ctx).Into(&n)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Node %q; --hostname-override names another", name)
	}
	if err != nil {
		return nil, err
	}
	node, err := o.node(&n)
	if err != nil {
		return nil, err
	}
	var services corev1.ServiceList
	if err := client.core.Get().Resource("services").Do(ctx).Into(&services); err != nil {
		return nil, err
	}
	var slices discoveryv1.EndpointSliceList
	if err := client.discovery.Get().Resource("endpointslices").Do(ctx).Into(&slices); err != nil {
		return nil, err
	}
	m := ruleset.New(node)
	for i := range services.Items {
		m.SetService(&services.Items[i])
	}
	for i := range slices.Items {
		m.SetSlice(&slices.Items[i])
	}
	m.Update(m.SetNode(node)...)
	return m, nil
}
