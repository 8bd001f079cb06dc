package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"

	"federation/apiserver/bootstrap"
	"federation/apiserver/console"
	"federation/apiserver/etcd"
	"federation/apiserver/housekeeping"
	"federation/apiserver/pki"
	"federation/apiserver/registry/policy"
	"federation/controllers/supervisor"
)

// Server is an apiserver that is ready to run.
type Server struct {
	config   *Config
	files    *pki.Files
	request  pki.Request
	api      *aggregatorapiserver.APIAggregator
	etcd     *etcd.Embedded // nil with an external etcd
	listener net.Listener
	policies *policy.Index
	unlock   func()
}

// New takes the data directory and the port, creates certificates at the first start, starts or finds etcd, and builds
// the server. After an error nothing is left running. A Server must be Run, once.
func (c *Config) New(ctx context.Context) (_ *Server, err error) {
	s := &Server{config: c, policies: policy.NewIndex()}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if s.unlock, err = etcd.Lock(c.DataDir); err != nil {
		return nil, err
	}
	if s.listener, err = c.listen(ctx); err != nil {
		return nil, err
	}
	endpoints, err := s.store(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.claim(ctx, endpoints); err != nil {
		return nil, err
	}
	return s, s.build(ctx, endpoints)
}

// claim creates keys at the first start, and makes sure that the store and our keys belong together. If they don't, it
// leaves no keys behind that somebody could take for the federation's.
func (s *Server) claim(ctx context.Context, endpoints []string) (err error) {
	store := s.config.Etcd
	store.Servers = endpoints
	if !pki.Exists(s.config.DataDir) {
		if err := store.CheckUnclaimed(ctx); err != nil {
			return err
		}
	}
	s.request = pki.Request{Server: "https://" + s.address(), Hosts: s.config.hosts()}
	if s.files, err = pki.Ensure(s.config.DataDir, s.request, time.Now()); err != nil {
		return err
	}
	identity, err := s.files.Identity()
	if err != nil {
		return err
	}
	return store.Claim(ctx, identity)
}

// listen takes the port at once, so that the error is there before anything else happens.
func (c *Config) listen(ctx context.Context) (net.Listener, error) {
	address := net.JoinHostPort(c.BindAddress, strconv.Itoa(c.SecurePort))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("address %s is in use by another process: choose another with --bind-address and --secure-port", address)
	case err != nil:
		return nil, fmt.Errorf("--bind-address %s, --secure-port %d: %w", c.BindAddress, c.SecurePort, err)
	}
	return listener, nil
}

// address returns where clients on this machine reach the server.
func (s *Server) address() string {
	host := s.config.BindAddress
	if s.config.bind.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, strconv.Itoa(s.listener.Addr().(*net.TCPAddr).Port))
}

// hosts returns the names for which the serving certificate is valid.
func (c *Config) hosts() []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	if !c.bind.IsUnspecified() && !c.bind.IsLoopback() {
		hosts = append(hosts, c.bind.String())
	}
	return slices.Compact(append(hosts, c.TLSNames...))
}

// store starts the embedded etcd or connects to the external one, and returns its addresses.
func (s *Server) store(ctx context.Context) (endpoints []string, err error) {
	if external := s.config.Etcd; len(external.Servers) > 0 {
		return external.Servers, external.Check(ctx)
	}
	if s.etcd, err = etcd.Start(ctx, s.config.DataDir); err != nil {
		return nil, err
	}
	return []string{s.etcd.Endpoint}, nil
}

func (s *Server) build(ctx context.Context, endpoints []string) error {
	o, err := s.controlPlaneOptions(ctx, endpoints)
	if err != nil {
		return err
	}
	front := console.RefuseForeign
	if s.config.Console {
		pages, err := s.newConsole()
		if err != nil {
			return err
		}
		front = func(next http.Handler) http.Handler { return pages.Before(console.RefuseForeign(next)) }
	}
	c, err := newChain(o, front)
	if err != nil {
		return err
	}
	own := federationProvider{policies: s.policies, review: s.config.ReviewFailover, explain: s.config.ReviewPlacement, tunnel: s.config.Tunnel, orphanByDefault: s.config.OrphanByDefault}
	if s.api, err = c.build(own, s.config.Clusters); err != nil {
		return err
	}
	s.api.GenericAPIServer.ShutdownTimeout = requestGrace
	for name, check := range s.config.ReadyChecks {
		if err := s.api.GenericAPIServer.AddReadyzChecks(healthz.NamedCheck(name, func(*http.Request) error { return check() })); err != nil {
			return err
		}
	}
	for name, hook := range map[string]genericapiserver.PostStartHookFunc{
		"federation-bootstrap": bootstrapHook, "federation-housekeeping": s.housekeepingHook, "federation-policies": s.policiesHook,
		"federation-before-ready": s.beforeReadyHook,
	} {
		if err := s.api.GenericAPIServer.AddPostStartHook(name, hook); err != nil {
			return err
		}
	}
	return nil
}

// newConsole makes the console. All processes of the federation have the key that signs tokens, and so each knows the others' sessions.
func (s *Server) newConsole() (*console.Console, error) {
	secret, err := os.ReadFile(s.files.ServiceAccountKey)
	if err != nil {
		return nil, err
	}
	login, err := s.config.ConsoleOIDC.read()
	if err != nil {
		return nil, err
	}
	return console.New(s.config.hosts(), secret, login)
}

// policiesHook holds up readiness until admission knows the policies.
func (s *Server) policiesHook(hook genericapiserver.PostStartHookContext) error {
	go supervisor.Keep(hook, "admission", func(context.Context) { s.policies.Follow(hook) })
	return wait.PollUntilContextCancel(hook, 20*time.Millisecond, true, func(context.Context) (bool, error) { return s.policies.Synced(), nil })
}

// beforeReadyHook delays readiness until admission has everything else that it reads.
func (s *Server) beforeReadyHook(hook genericapiserver.PostStartHookContext) error {
	if s.config.BeforeReady == nil {
		return nil
	}
	return s.config.BeforeReady(hook, hook.LoopbackClientConfig)
}

// bootstrapHook delays readiness until the federation's own objects exist.
func bootstrapHook(hook genericapiserver.PostStartHookContext) error {
	kube, err := kubernetes.NewForConfig(hook.LoopbackClientConfig)
	if err != nil {
		return err
	}
	definitions, err := apiextensions.NewForConfig(hook.LoopbackClientConfig)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(hook, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = errors.Join(bootstrap.Ensure(ctx, kube), bootstrap.EnsureMultiClusterKinds(ctx, definitions.CustomResourceDefinitions()))
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("the federation's own objects: %w", last)
	}
	return err
}

func (s *Server) housekeepingHook(hook genericapiserver.PostStartHookContext) error {
	ca, err := os.ReadFile(s.files.CA)
	if err != nil {
		return err
	}
	run := housekeeping.Run
	if s.etcd == nil {
		run = housekeeping.RunElected
	}
	go supervisor.Keep(hook, "housekeeping", func(context.Context) {
		if err := run(hook, hook.LoopbackClientConfig, housekeeping.Options{RootCA: ca, SignAgent: s.files.SignClient}); err != nil {
			klog.ErrorS(err, "Housekeeping does not run")
		}
	})
	return nil
}

// KubeconfigPath returns the administrator's kubeconfig.
func (s *Server) KubeconfigPath() string { return s.files.AdminKubeconfig }

// ControllersConfig returns how the federation's controllers in this process reach the server: as pki.ControllersUser,
// without throttling, because the server has its own priority levels.
func (s *Server) ControllersConfig() *restclient.Config {
	return &restclient.Config{
		Host: s.request.Server,
		QPS:  -1,
		TLSClientConfig: restclient.TLSClientConfig{
			CAFile: s.files.CA, CertFile: s.files.ControllersCert, KeyFile: s.files.ControllersKey,
		},
	}
}
