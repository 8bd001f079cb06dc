package v1beta1

import (
	"strings"
)

// DrillProbe is a client of a name of ours during a drill: it looks the name up at the federation's DNS server, connects to one of the addresses, and asks.
type DrillProbe struct {
	// Name of the probe, for the report.
	Name string `json:"name"`
	// The Service whose global name is asked for. Either this or host.
	// +optional
	Service *DrillProbeService `json:"service,omitempty"`
	// A name in the federation's DNS zone: of a Service in a region or zone, or one that an Ingress, a Service or a policy has.
	// +optional
	Host string `json:"host,omitempty"`
	// HTTP and HTTPS: a status from 200 to 399; TCP: the connection is accepted; DNS: the name has an address.
	Type DrillProbeType `json:"type"`
	// The port; if left out 80 with HTTP and 443 with HTTPS. TCP must have one.
	// +optional
	Port int32 `json:"port,omitempty"`
	// The path that HTTP and HTTPS ask for, "/" if left out.
	// +optional
	Path string `json:"path,omitempty"`
	// HTTPS takes any certificate. Otherwise it must be for the name.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// Caching, the default: an answer is kept for its TTL, as a resolver does. Fresh: the name is looked up each time.
	// +optional
	Mode DrillProbeMode `json:"mode,omitempty"`
	// Seconds from one question to the next, from 1 to 60, and at most baselineSeconds; 1 if left out.
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// Seconds that an answer may take, from 1 to 5; 2 if left out.
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// It ends the drill where too much fails, see guardrails.maxFailedPerMille.
	// +optional
	Guard bool `json:"guard,omitempty"`
}

// DrillProbeService names a Service.
type DrillProbeService struct {
	// Its namespace.
	Namespace string `json:"namespace"`
	// Its name.
	Name string `json:"name"`
}

// DrillProbeType is what a probe asks.
type DrillProbeType string

// DrillProbeMode is what a probe does with answers of DNS.
type DrillProbeMode string

const (
	// ProbeHTTP, ProbeHTTPS, ProbeTCP and ProbeDNS are what a probe asks.
	ProbeHTTP  DrillProbeType = "HTTP"
	ProbeHTTPS DrillProbeType = "HTTPS"
	ProbeTCP   DrillProbeType = "TCP"
	ProbeDNS   DrillProbeType = "DNS"

	// ProbeCaching keeps answers for their TTL, ProbeFresh keeps none.
	ProbeCaching DrillProbeMode = "Caching"
	ProbeFresh   DrillProbeMode = "Fresh"
)

// DrillProbeResult is what a probe found, from the fault on.
type DrillProbeResult struct {
	// Name of the probe.
	Name string `json:"name"`
	// Where it asked from: Federation is the process that leads.
	From string `json:"from"`
	// How often it asked.
	Asked int64 `json:"asked"`
	// How often that failed.
	Failed int64 `json:"failed"`
	// How often it could not ask, for reasons of its own: no socket, no route. These are not among those asked.
	// +optional
	Unknown int64 `json:"unknown,omitempty"`
	// The longest time from a failure to the next success, in milliseconds.
	// +optional
	LongestOutageMilliseconds int64 `json:"longestOutageMilliseconds,omitempty"`
	// Why it failed last.
	// +optional
	LastFailure string `json:"lastFailure,omitempty"`
}

// DNSName returns the name that is asked for, with the final dot.
func (p *DrillProbe) DNSName(federation, zone string) string {
	if p.Service != nil {
		return strings.ToLower(strings.Join([]string{p.Service.Name, p.Service.Namespace, federation, "svc", strings.TrimSuffix(zone, ".")}, ".")) + "."
	}
	return strings.ToLower(strings.TrimSuffix(p.Host, ".")) + "."
}

// Period returns how many seconds there are from one question to the next, Timeout how many an answer may take.
func (p *DrillProbe) Period() int32 { return max(1, p.PeriodSeconds) }

// Timeout returns how many seconds an answer may take.
func (p *DrillProbe) Timeout() int32 {
	if p.TimeoutSeconds == 0 {
		return 2
	}
	return p.TimeoutSeconds
}

// FailedPerMille returns how many of a thousand questions of a probe may fail within the window, Window how long that
// is, in seconds.
func (g *FailoverDrillGuardrails) FailedPerMille() int32 { return orDefault(g.MaxFailedPerMille, 10) }

// Window returns how long the window is in which failures are counted, in seconds.
func (g *FailoverDrillGuardrails) Window() int32 { return orDefault(g.WindowSeconds, 30) }
