package v1beta1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DrainAnnotation is, on a Cluster that is drained or being drained, a Drain as JSON: what the federation needs to undo it
// exactly, and to go on with it after a restart.
const DrainAnnotation = "federation.kubernetes.io/drain"

// DrainSubresource is where a Cluster is cordoned and drained by somebody who may not change it otherwise.
const DrainSubresource = "drain"

// Steps of a drain that the federation carries out.
const (
	// DrainStepDNS: the weight in DNS was set to 0.
	DrainStepDNS = "DNS"
	// DrainStepMove: TaintDrain was added.
	DrainStepMove = "Move"
	// DrainStepReturn: the taints were taken off again.
	DrainStepReturn = "Return"
)

// Drain is the state before a drain, and how far the drain is.
type Drain struct {
	// Step is the last step that was taken: DNS, Move or Return; "" for what a drill has taken out.
	Step string `json:"step,omitempty"`
	// Since is when the cluster's weight in DNS became 0, in UTC, to the second.
	Since metav1.Time `json:"since"`
	// DNSWeight is spec.dnsWeight before; nil where it was left out.
	DNSWeight *int32 `json:"dnsWeight,omitempty"`
	// Cordoned reports whether the cluster bore TaintUnschedulable before.
	Cordoned bool `json:"cordoned,omitempty"`
	// Empty: the drain saw that no replica was left.
	Empty bool `json:"empty,omitempty"`
	// Drill is the UID of the FailoverDrill that this belongs to, and undoes it; "": somebody drained the cluster.
	Drill string `json:"drill,omitempty"`
}

// String returns the drain as the annotation has it.
func (d *Drain) String() string { return asJSON(d) }

// ParseDrain parses the annotation; nil, nil if there is none.
func ParseDrain(value string) (*Drain, error) {
	if value == "" {
		return nil, nil
	}
	d := &Drain{}
	if err := json.Unmarshal([]byte(value), d); err != nil {
		return nil, fmt.Errorf("annotation %s: %q must be JSON as drain writes it: %w", DrainAnnotation, value, err)
	}
	return d, nil
}

// Reasons of events of a Cluster about its drain.
const (
	// EventDraining: the federation began to drain the cluster.
	EventDraining = "Draining"
	// EventDrained: no replica is left there, and the cluster is cordoned.
	EventDrained = "Drained"
	// EventUndrained: the drain is undone.
	EventUndrained = "Undrained"
)

// Drained is what OutOfService returns for a cluster that a drain has emptied.
const Drained = "Drained"

// OutOfService returns how far a cluster is taken out of service: SchedulingDisabled, Draining or Drained, or "". A
// drain ends with a cordon; if the cluster was cordoned before, the drain must record that it is over.
func (c *Cluster) OutOfService() string {
	tainted := func(key string) bool {
		return slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
	}
	d, err := ParseDrain(c.Annotations[DrainAnnotation])
	switch cordoned, draining := tainted(TaintUnschedulable), tainted(TaintDrain); {
	case draining && cordoned && (err != nil || d == nil || d.Empty || !d.Cordoned):
		return Drained
	case draining:
		return "Draining"
	case cordoned:
		return "SchedulingDisabled"
	}
	return ""
}

// InfoConfigMap is a ConfigMap in FederationNamespace in which the controllers publish the federation's configuration,
// for tools and for reviews, which have only the API.
const InfoConfigMap = "federation-info"

// ConsoleLinksConfigMap is a ConfigMap in FederationNamespace with the links that the console shows: an administrator makes it, and everybody who has
// logged in may read it.
const ConsoleLinksConfigMap = "console-links"

const (
	// DNSProvidersConfigMap is a ConfigMap in FederationNamespace that has, by the name of each DNS provider, a condition as
	// JSON.
	DNSProvidersConfigMap = "federation-dns-providers"
	// RemoveNamesAnnotation on it names a DNS provider, whose names that the first pass held back the federation then
	// removes. It is removed when that is done.
	RemoveNamesAnnotation = "federation.kubernetes.io/remove-names"
	// ComponentsConfigMap is a ConfigMap in FederationNamespace that has, as JSON, the failed parts of the federation's
	// processes: those that do not run, and those that were restarted recently.
	ComponentsConfigMap = "federation-components"
	// DNSHealthChecksConfigMap is a ConfigMap in FederationNamespace that has, under DNSHealthChecksFailing, as JSON, the load balancers
	// that do not answer the checks of DNSSettings.
	DNSHealthChecksConfigMap = "federation-dns-health-checks"
	// DNSHealthChecksFailing is its only key.
	DNSHealthChecksFailing = "failing"
	// DNSHostsConfigMap is a ConfigMap in FederationNamespace that has, by host in the zone, the namespace that owns
	// it, and until when, if no object there claims it any more.
	DNSHostsConfigMap = "federation-dns-hosts"
	// DNSPublished is the type of these conditions: the provider has the records.
	DNSPublished = "Published"
)

// Info is how a federation is set up.
type Info struct {
	// Name of the federation: part of its DNS names.
	Name string
	// DNSZone is the zone that the names are in.
	DNSZone string
	// DNSTTL is how long resolvers may keep an answer.
	DNSTTL time.Duration
	// FailoverMaxZones is the maximum of zones failed over at once; negative: no limit.
	FailoverMaxZones int
	// FailoverWindow is the time within which the loss of a majority counts as one event: the federation itself is cut
	// off. 0: the federation is older and does not publish it.
	FailoverWindow time.Duration
	// CrossClusterEndpoints: members have EndpointSlices with the other clusters' addresses. True if an older
	// federation does not publish it.
	CrossClusterEndpoints bool
	// ClusterSetIPRanges are the networks of clusterset IPs, in CIDR notation with a comma between; "": there are none.
	ClusterSetIPRanges string
	// MemberTokenLifetime is the requested lifetime of the tokens of members; 0: an older federation does not publish
	// it.
	MemberTokenLifetime time.Duration
	// PublicAddressesOnly: DNS has only those addresses of load balancers that all of the internet reaches.
	PublicAddressesOnly bool
}

// ConfigMapData returns the info as the data of InfoConfigMap.
func (i Info) ConfigMapData() map[string]string {
	return map[string]string{
		"name": i.Name, "dnsZone": i.DNSZone, "dnsTTL": i.DNSTTL.String(), "failoverMaxZones": fmt.Sprint(i.FailoverMaxZones),
		"failoverWindow": i.FailoverWindow.String(), "crossClusterEndpoints": strconv.FormatBool(i.CrossClusterEndpoints),
		"clusterSetIPRanges": i.ClusterSetIPRanges, "memberTokenLifetime": i.MemberTokenLifetime.String(),
		"dnsPublicAddressesOnly": strconv.FormatBool(i.PublicAddressesOnly),
	}
}

// ParseInfo reads the data of InfoConfigMap. The error names the key.
func ParseInfo(data map[string]string) (i Info, err error) {
	i.Name, i.DNSZone, i.CrossClusterEndpoints = data["name"], data["dnsZone"], data["crossClusterEndpoints"] != "false"
	i.ClusterSetIPRanges, i.PublicAddressesOnly = data["clusterSetIPRanges"], data["dnsPublicAddressesOnly"] == "true"
	for _, key := range []string{"name", "dnsZone"} {
		if data[key] == "" {
			return i, fmt.Errorf("ConfigMap %s/%s: %s is missing", FederationNamespace, InfoConfigMap, key)
		}
	}
	if i.DNSTTL, err = time.ParseDuration(data["dnsTTL"]); err != nil {
		return i, fmt.Errorf("ConfigMap %s/%s: dnsTTL %q: must be a duration, as 15s", FederationNamespace, InfoConfigMap, data["dnsTTL"])
	}
	if _, err = fmt.Sscan(data["failoverMaxZones"], &i.FailoverMaxZones); err != nil {
		return i, fmt.Errorf("ConfigMap %s/%s: failoverMaxZones %q: must be a whole number", FederationNamespace, InfoConfigMap, data["failoverMaxZones"])
	}
	if text, there := data["failoverWindow"]; there {
		if i.FailoverWindow, err = time.ParseDuration(text); err != nil || i.FailoverWindow < 0 {
			return i, fmt.Errorf("ConfigMap %s/%s: failoverWindow %q: must be a duration, as 1m0s", FederationNamespace, InfoConfigMap, text)
		}
	}
	if text, there := data["memberTokenLifetime"]; there {
		if i.MemberTokenLifetime, err = time.ParseDuration(text); err != nil || i.MemberTokenLifetime < 0 {
			return i, fmt.Errorf("ConfigMap %s/%s: memberTokenLifetime %q: must be a duration, as 24h0m0s", FederationNamespace, InfoConfigMap, text)
		}
	}
	return i, nil
}
