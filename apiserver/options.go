package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"federation/apiserver/admission"
	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/etcd"
	"federation/apiserver/registry/cluster"
)

// Options are the apiserver's settings.
type Options struct {
	// DataDir is the folder for the embedded etcd, certificates, keys and kubeconfig files.
	DataDir string
	// BindAddress and SecurePort are where the API is served. Port 0 takes a free one.
	BindAddress string
	SecurePort  int
	// TLSNames are names and IP addresses for the serving certificate, in addition to localhost and the host name.
	TLSNames []string
	// Etcd is an external etcd; without servers an embedded one is used.
	Etcd etcd.External

	// OrphanByDefault: a delete that names no propagation policy leaves the copies in the clusters.
	OrphanByDefault bool

	FrontOptions

	// What the controllers, of which the apiserver knows nothing, do inside of it. All may be nil.

	// ReviewFailover answers FailoverReviews: it fills in the status of one whose spec is valid. An error with a status
	// of the API goes to the client as it is. Nil: reviews are rejected with code 501.
	ReviewFailover func(ctx context.Context, review *v1beta1.FailoverReview) error
	// ReviewPlacement answers PlacementReviews in the same way, by what the caller may read.
	ReviewPlacement func(ctx context.Context, caller rest.ImpersonationConfig, review *v1beta1.PlacementReview) error
	// Tunnel has the connections of agents, by which clusters are reached whose connection is Pull. Nil: agents are refused.
	Tunnel cluster.Tunnel
	// Place decides where the replicas of a new object go, in the write that creates it: it returns the value of
	// v1beta1.PlacementAnnotation, or "" to leave that to the placement controller. The object is of a divided kind,
	// has a name and no placement, and its version is that of v1beta1.FederatedKinds. Place may be called concurrently
	// at any time, also for objects that are rejected afterwards, and it delays the create.
	Place func(object *unstructured.Unstructured) string
	// NamesInDNS returns what the names of Services and Ingresses are built from, so that names that DNS cannot have
	// are rejected; nil while that is unknown. Without it none are.
	NamesInDNS admission.NamesInDNS
	// ReadyChecks are more checks of /readyz, by name.
	ReadyChecks map[string]func() error
	// Clusters returns the Clusters, which must not be changed, to warn of names that none has, and to show their pods
	// and nodes; nil while they are unknown.
	Clusters func() []*v1beta1.Cluster
	// CountClusters returns in how many clusters an object may be at once, 0 while that is unknown, to warn of what means something
	// else in several.
	CountClusters func(object *unstructured.Unstructured) int
	// TryOverrides tries a policy on an object that it selects, so that people are warned of overrides that do not work.
	TryOverrides admission.TryOverrides
	// BeforeReady prepares these: the server serves, but is not ready until it returns. loopback is for requests to the
	// server itself; ctx ends with the server.
	BeforeReady func(ctx context.Context, loopback *rest.Config) error
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	return &Options{DataDir: "federation-data", BindAddress: "127.0.0.1", SecurePort: 6443, FrontOptions: newFrontOptions()}
}

// AddFlags adds the flags of these options.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir,
		"folder for the embedded etcd, certificates, keys and kubeconfig files. Made at the first start. Back it up: the key that encrypts Secrets is in it")
	fs.StringVar(&o.BindAddress, "bind-address", o.BindAddress,
		"IP address at which the API is served. 0.0.0.0 or :: is every address of this machine")
	fs.IntVar(&o.SecurePort, "secure-port", o.SecurePort,
		"port at which the API is served, with TLS. 0 takes a free one; the kubeconfig files tell which")
	fs.StringSliceVar(&o.TLSNames, "tls-san", o.TLSNames,
		"names or IP addresses, beside localhost and this machine's name, by which clients reach the API. The serving certificate is issued again when it lacks one")
	fs.BoolVar(&o.OrphanByDefault, "orphan-by-default", o.OrphanByDefault,
		"leave the copies in the clusters when a delete names no propagation policy, as Federation v1 did. kubectl and most tools name one; without this flag such a delete deletes the copies, too")
	o.addFlags(fs)
	fs.StringSliceVar(&o.Etcd.Servers, "etcd-servers", o.Etcd.Servers,
		"URLs of an external etcd, as https://etcd-1:2379, for more than one apiserver or for your own backups. Without it an etcd runs inside this process")
	fs.StringVar(&o.Etcd.CAFile, "etcd-cafile", o.Etcd.CAFile, "with --etcd-servers: PEM file with the authority of etcd's certificates")
	fs.StringVar(&o.Etcd.CertFile, "etcd-certfile", o.Etcd.CertFile, "with --etcd-servers: PEM file with our client certificate for etcd")
	fs.StringVar(&o.Etcd.KeyFile, "etcd-keyfile", o.Etcd.KeyFile, "with --etcd-servers: PEM file with the key of --etcd-certfile")
}

// Config is a set of options that fit together.
type Config struct {
	Options
	bind net.IP
}

// Complete checks the options and makes paths absolute. The error has one line per fault, with the flag, its value and
// what is allowed.
func (o *Options) Complete() (*Config, error) {
	c := &Config{Options: *o}
	errs := []error{c.completeDataDir(), c.completeAddress(), c.checkEtcd(), c.check()}
	for _, name := range o.TLSNames {
		if net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
			errs = append(errs, fmt.Errorf("--tls-san %q: must be a host name or an IP address", name))
		}
	}
	return c, errors.Join(errs...)
}

func (c *Config) completeDataDir() (err error) {
	if c.DataDir == "" {
		return errors.New(`--data-dir "": must be the path of a folder`)
	}
	if info, err := os.Stat(c.DataDir); err == nil && !info.IsDir() {
		return fmt.Errorf("--data-dir %q: must be a folder, and is a file", c.DataDir)
	}
	c.DataDir, err = filepath.Abs(c.DataDir)
	return err
}

func (c *Config) completeAddress() error {
	if c.bind = net.ParseIP(c.BindAddress); c.bind == nil {
		return fmt.Errorf("--bind-address %q: must be an IP address, as 127.0.0.1 or 0.0.0.0", c.BindAddress)
	}
	if c.SecurePort < 0 || c.SecurePort > 65535 {
		return fmt.Errorf("--secure-port %d: must be from 0 to 65535", c.SecurePort)
	}
	return nil
}

func (c *Config) checkEtcd() error {
	x := c.Etcd
	var errs []error
	for _, server := range x.Servers {
		if u, err := url.Parse(server); err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
			errs = append(errs, fmt.Errorf("--etcd-servers %q: must be a URL, as https://etcd-1:2379", server))
		} else if u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback() {
			errs = append(errs, fmt.Errorf("--etcd-servers %q: must be https, for it leaves this machine", server))
		}
	}
	if (x.CertFile == "") != (x.KeyFile == "") {
		errs = append(errs, fmt.Errorf("--etcd-certfile %q, --etcd-keyfile %q: must be given together", x.CertFile, x.KeyFile))
	}
	for flag, file := range map[string]string{"--etcd-cafile": x.CAFile, "--etcd-certfile": x.CertFile, "--etcd-keyfile": x.KeyFile} {
		switch _, err := os.Stat(file); {
		case file == "":
		case len(x.Servers) == 0:
			errs = append(errs, fmt.Errorf("%s %q: goes with --etcd-servers only", flag, file))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s %q: must be a file that can be read: %w", flag, file, err))
		}
	}
	return errors.Join(errs...)
}
