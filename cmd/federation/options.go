package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"federation/clusterregistry"
	"federation/clusterregistry/credential"
	"federation/clusterregistry/limits"
	"federation/clusterregistry/tunnel"
	clustersetipplan "federation/controllers/clustersetip/plan"
	"federation/controllers/failover"
	readinessplan "federation/controllers/readiness/plan"
	"federation/controllers/servicedns"
	"federation/controllers/servicedns/lookup"
	"federation/controllers/supervisor"
	"federation/controllers/tracing"
	"federation/dnsprovider/authoritative/serverflags"
	"federation/dnsprovider/config"
)

// controllersOptions are the settings of the controllers and of DNS.
type controllersOptions struct {
	name             string
	writes           int
	reports          int
	tracingConfig    string         // a file
	spans            *tracing.Spans // by that file; nil: none are recorded
	objectMetrics    bool
	objectSeries     int
	propagateSecrets string // secretsAll or secretsReferenced
	zone             string
	dnsBindAddress   string
	dnsTTL           time.Duration
	dnsServer        serverflags.Flags
	lookups          lookup.Flags
	dnssec           bool
	keyLifetime      time.Duration
	parentServers    []string
	dnsProviders     string                     // a file
	others           []servicedns.NamedProvider // those of that file
	healthCheck      clusterregistry.HealthCheckFlags
	memberTokens     time.Duration
	memberLimits     limits.Flags
	failover         failover.Flags
	readiness        []string // levels
	levels           []readinessplan.Level
	unschedulable    time.Duration
	clusterSetIPs    []string // networks
	ranges           clustersetipplan.Ranges
	endpoints        bool // members get EndpointSlices of each other
	parts            *supervisor.Supervisor
	tunnel           *tunnel.Hub // of agents that connect to this process; nil: none do
}

// Values of --propagate-secrets.
const (
	secretsReferenced = "Referenced"
	secretsAll        = "All"
)

// mostObjectSeries is the highest --object-metrics-limit: with more, a scrape takes longer than Prometheus waits.
const mostObjectSeries = 200000

// leastKeyLifetime is that of a key that is rolled by itself.
const leastKeyLifetime = 7 * 24 * time.Hour

func newControllersOptions() *controllersOptions {
	return &controllersOptions{
		name: "federation", writes: 64, reports: 30, objectSeries: 10000, propagateSecrets: secretsReferenced,
		zone: "federation.test", dnsBindAddress: "127.0.0.1:5353", dnsTTL: 15 * time.Second,
		healthCheck: clusterregistry.NewHealthCheckFlags(), memberTokens: credential.TokenLifetime, memberLimits: limits.NewFlags(), failover: failover.NewFlags(), readiness: []string{"Zone", "Region"}, unschedulable: time.Minute, endpoints: true,
		parts: supervisor.New(),
	}
}

func (o *controllersOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.name, "name", o.name, "name of the federation: part of the DNS names of its Services (a DNS label)")
	o.healthCheck.Add(fs)
	o.memberLimits.Add(fs)
	fs.DurationVar(&o.memberTokens, "member-token-lifetime", o.memberTokens, "how long the federation's tokens for member clusters last, as they are asked for when a cluster joins and at each renewal, which is at half of that; a cluster may give less. A federation that is away for longer than half of it may have to join its clusters again. After you make it longer, join them again too: the fence in a cluster allows what it was then")
	o.failover.Add(fs)
	fs.StringSliceVar(&o.readiness, "readiness", o.readiness, "say of each of these `LEVELS`, Zone and Region, whether its loss would be survived now, in a FailoverReadiness; empty: of none")
	fs.DurationVar(&o.unschedulable, "unschedulable-after", o.unschedulable, "how long a pod in a member must have found no room, or must have been refused, before its cluster counts as full for its workload")
	fs.IntVar(&o.writes, "concurrent-member-writes", o.writes, "writes under way at once to each member cluster")
	fs.IntVar(&o.reports, "status-updates-per-second", o.reports, "how many statuses of federated objects are written in the long run; what changes faster is written together. Services don't wait")
	fs.BoolVar(&o.objectMetrics, "object-metrics", false, "have metrics of how many replicas each Deployment, ReplicaSet and StatefulSet is to have and has ready in each cluster; see docs/operations.md")
	fs.IntVar(&o.objectSeries, "object-metrics-limit", o.objectSeries, "with --object-metrics: the most time series of them from each process. Namespaces share them equally, as far as they need them; federation_object_metrics_omitted counts the objects that are left out")
	fs.StringVar(&o.propagateSecrets, "propagate-secrets", o.propagateSecrets, "where Secrets and ServiceAccounts go that no policy governs: Referenced: where a workload, Ingress or ServiceAccount goes that refers to them, and else nowhere; All: to every cluster")
	fs.StringVar(&o.zone, "dns-zone", o.zone, "DNS zone that the names are in: SERVICE.NAMESPACE.FEDERATION.svc[[.ZONE].REGION].DNS-ZONE")
	fs.StringVar(&o.dnsBindAddress, "dns-bind-address", o.dnsBindAddress, "HOST:PORT on which the authoritative DNS server answers, over UDP and TCP")
	o.dnsServer.Add(fs, "dns-")
	o.lookups.Add(fs, "dns-")
	fs.BoolVar(&o.dnssec, "dnssec", false, "sign the zone, with the keys in the Secret federation-system/dns-signing-keys; made if it is missing")
	fs.DurationVar(&o.keyLifetime, "dnssec-key-lifetime", 0, "how long a key signs the zone until another one takes its place; 0: until somebody asks for that. Someone, or something, must give the new DS record to the parent zone each time")
	fs.StringSliceVar(&o.parentServers, "dnssec-parent-servers", nil, "`HOST:PORT` of all servers of the parent zone, which are asked for DS records; without it they are looked up")
	fs.StringVar(&o.dnsProviders, "dns-providers", "", "`FILE` in YAML of other DNS servers and services that are to have the zone, too: BIND, PowerDNS, clouds and so on; see docs/dns.md")
	fs.StringSliceVar(&o.clusterSetIPs, "clusterset-ip-range", nil, "`NETWORK` in CIDR notation, at most one a family with a comma between, of the clusterset IPs that Services ask for by annotation. Used by nothing else in any member; see docs/clusterset-ips.md")
	fs.BoolVar(&o.endpoints, "cross-cluster-endpoints", o.endpoints, "write EndpointSlices with the other clusters' load balancers into each member, for node agents; false takes away those that were written. See docs/node-agent.md")
	fs.DurationVar(&o.dnsTTL, "dns-ttl", o.dnsTTL, "how long resolvers may keep an answer")
}

// objectMetricsSeries returns the most time series of metrics of objects; 0: none.
func (o *controllersOptions) objectMetricsSeries() int {
	if !o.objectMetrics {
		return 0
	}
	return o.objectSeries
}

// validate names the flag, its value and what is allowed. It reads the file of --dns-providers, so that what is
// wrong with it shows before anything starts.
func (o *controllersOptions) validate() (err error) {
	if errs := validation.IsDNS1123Label(o.name); len(errs) > 0 {
		return fmt.Errorf("--name %q: %s", o.name, errs[0])
	}
	if errs := validation.IsDNS1123Subdomain(o.zone); len(errs) > 0 {
		return fmt.Errorf("--dns-zone %q: %s", o.zone, errs[0])
	}
	if err := errors.Join(o.healthCheck.Validate(), o.memberLimits.Validate(), o.failover.Validate(), o.lookups.Validate()); err != nil {
		return err
	}
	if least, most := credential.LeastTokenLifetime, credential.MostTokenLifetime; o.memberTokens < least || o.memberTokens > most {
		return fmt.Errorf("--member-token-lifetime %s: must be from %s to %s", o.memberTokens, least, most)
	}
	if o.propagateSecrets != secretsReferenced && o.propagateSecrets != secretsAll {
		return fmt.Errorf("--propagate-secrets %q: must be %s or %s", o.propagateSecrets, secretsReferenced, secretsAll)
	}
	if o.unschedulable <= 0 || o.unschedulable > 24*time.Hour {
		return fmt.Errorf("--unschedulable-after %s: must be more than 0 and at most 24h", o.unschedulable)
	}
	if o.writes < 1 || o.writes > 1000 {
		return fmt.Errorf("--concurrent-member-writes %d: must be from 1 to 1000", o.writes)
	}
	if o.reports < 1 || o.reports > 10000 {
		return fmt.Errorf("--status-updates-per-second %d: must be from 1 to 10000", o.reports)
	}
	if o.objectSeries < 1 || o.objectSeries > mostObjectSeries {
		return fmt.Errorf("--object-metrics-limit %d: must be from 1 to %d", o.objectSeries, mostObjectSeries)
	}
	if o.dnsTTL < time.Second || o.dnsTTL > 24*time.Hour {
		return fmt.Errorf("--dns-ttl %s: must be from 1s to 24h", o.dnsTTL)
	}
	if o.keyLifetime != 0 && o.keyLifetime < leastKeyLifetime {
		return fmt.Errorf("--dnssec-key-lifetime %s: must be 0 or at least %s: a roll takes days", o.keyLifetime, leastKeyLifetime)
	}
	for _, address := range o.parentServers {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("--dnssec-parent-servers %q: must be HOST:PORT (%v)", address, err)
		}
	}
	if _, _, err := net.SplitHostPort(o.dnsBindAddress); err != nil {
		return fmt.Errorf("--dns-bind-address %q: must be HOST:PORT (%v)", o.dnsBindAddress, err)
	}
	if o.ranges, err = clustersetipplan.ParseRanges(o.clusterSetIPs); err != nil {
		return fmt.Errorf("--clusterset-ip-range %w", err)
	}
	if o.levels, err = readinessplan.ParseLevels(o.readiness); err != nil {
		return fmt.Errorf("--readiness %w", err)
	}
	providers, err := config.Read(o.dnsProviders, o.zone)
	for _, p := range providers {
		o.others = append(o.others, servicedns.NamedProvider{Name: p.Name, Provider: p.Provider})
	}
	return err
}
