package v1beta1

import (
	"cmp"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DNSHealthCheckType is how a load balancer is checked.
type DNSHealthCheckType string

// Types of checks.
const (
	// DNSHealthCheckTCP: it accepts a connection.
	DNSHealthCheckTCP DNSHealthCheckType = "TCP"
	// DNSHealthCheckHTTP: it answers a GET with a status from 200 to 399. Redirects are not followed.
	DNSHealthCheckHTTP DNSHealthCheckType = "HTTP"
	// DNSHealthCheckHTTPS: the same over TLS.
	DNSHealthCheckHTTPS DNSHealthCheckType = "HTTPS"
)

// DNSHealthCheck configures how the federation checks load balancers. One healthy load balancer of a cluster is enough.
type DNSHealthCheck struct {
	// TCP, HTTP or HTTPS.
	Type DNSHealthCheckType `json:"type"`
	// Port of the load balancer. If left out 80 with HTTP and 443 with HTTPS; TCP must have one.
	// +optional
	Port int32 `json:"port,omitempty"`
	// Path that HTTP and HTTPS ask for, "/" if left out. At most 256 bytes.
	// +optional
	Path string `json:"path,omitempty"`
	// Host that HTTP and HTTPS ask for; the address if left out. With HTTPS the certificate must be for it.
	// +optional
	Host string `json:"host,omitempty"`
	// HTTPS takes any certificate. Without it there must be a host.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// Seconds from one question to the next, from 1 to 3600; 10 if left out.
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`
	// Seconds that an answer may take, from 1 to 60 and at most the interval; more than 5 count as 5. 2 if left out, or the interval
	// if that is less.
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// How many questions in a row must fail until the load balancer counts as failing, from 1 to 10; 3 if left out.
	// +optional
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
	// How many in a row must be answered until it counts as working again, from 1 to 10; 2 if left out.
	// +optional
	SuccessThreshold int32 `json:"successThreshold,omitempty"`
}

// Bounds of a DNSHealthCheck.
const (
	maxCheckPort    = 65535
	maxCheckPath    = 256
	maxCheckPeriod  = 3600
	maxCheckTimeout = 60 // that was taken once
	maxTimeoutUsed  = 5
	maxCheckRow     = 10
)

var dnsCheckTypes = []DNSHealthCheckType{DNSHealthCheckHTTP, DNSHealthCheckHTTPS, DNSHealthCheckTCP}

// WithDefaults returns the check with all that is left out filled in; the path stays empty with TCP.
func (c DNSHealthCheck) WithDefaults() DNSHealthCheck {
	switch c.Type {
	case DNSHealthCheckHTTP:
		c.Port, c.Path = cmp.Or(c.Port, 80), cmp.Or(c.Path, "/")
	case DNSHealthCheckHTTPS:
		c.Port, c.Path = cmp.Or(c.Port, 443), cmp.Or(c.Path, "/")
	}
	c.PeriodSeconds = cmp.Or(c.PeriodSeconds, 10)
	c.TimeoutSeconds = min(cmp.Or(c.TimeoutSeconds, min(2, max(1, c.PeriodSeconds))), maxTimeoutUsed)
	c.FailureThreshold, c.SuccessThreshold = cmp.Or(c.FailureThreshold, 3), cmp.Or(c.SuccessThreshold, 2)
	return c
}

func (c *DNSHealthCheck) validate(path *field.Path) (errs field.ErrorList) {
	switch c.Type {
	case "":
		errs = append(errs, field.Required(path.Child("type"), "must be TCP, HTTP or HTTPS"))
	case DNSHealthCheckTCP, DNSHealthCheckHTTP, DNSHealthCheckHTTPS:
		errs = append(errs, c.validateWhat(path)...)
	default:
		errs = append(errs, field.NotSupported(path.Child("type"), c.Type, dnsCheckTypes))
	}
	d := c.WithDefaults()
	errs = append(errs, checkBetween(d.PeriodSeconds, 1, maxCheckPeriod, path.Child("periodSeconds"))...)
	errs = append(errs, checkBetween(cmp.Or(c.TimeoutSeconds, d.TimeoutSeconds), 1, min(maxCheckTimeout, max(d.PeriodSeconds, 1)), path.Child("timeoutSeconds"))...)
	errs = append(errs, checkBetween(d.FailureThreshold, 1, maxCheckRow, path.Child("failureThreshold"))...)
	return append(errs, checkBetween(d.SuccessThreshold, 1, maxCheckRow, path.Child("successThreshold"))...)
}

// validateWhat checks what is asked: the fields that depend on the type.
func (c *DNSHealthCheck) validateWhat(path *field.Path) (errs field.ErrorList) {
	d := c.WithDefaults()
	errs = append(errs, checkBetween(d.Port, 1, maxCheckPort, path.Child("port"))...)
	if c.Type == DNSHealthCheckTCP {
		for name, value := range map[string]string{"path": c.Path, "host": c.Host} {
			if value != "" {
				errs = append(errs, field.Invalid(path.Child(name), value, "must not be there with type TCP"))
			}
		}
	} else {
		if u, err := url.ParseRequestURI(d.Path); err != nil || u.Host != "" || !strings.HasPrefix(d.Path, "/") || strings.ContainsAny(d.Path, " #") {
			errs = append(errs, field.Invalid(path.Child("path"), c.Path, "must be a path that begins with /, as /healthz"))
		}
		if len(c.Path) > maxCheckPath {
			errs = append(errs, field.TooLong(path.Child("path"), "", maxCheckPath))
		}
	}
	if c.Host != "" {
		for _, msg := range validation.IsDNS1123Subdomain(c.Host) {
			errs = append(errs, field.Invalid(path.Child("host"), c.Host, msg))
		}
	}
	if c.InsecureSkipVerify && c.Type != DNSHealthCheckHTTPS {
		errs = append(errs, field.Invalid(path.Child("insecureSkipVerify"), true, "must not be there without type HTTPS"))
	}
	if c.Type == DNSHealthCheckHTTPS && c.Host == "" && !c.InsecureSkipVerify {
		errs = append(errs, field.Required(path.Child("host"), "the certificate must be for it; or set insecureSkipVerify"))
	}
	return errs
}
