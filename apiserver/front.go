package apiserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/kubernetes/pkg/controlplane/apiserver/options"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"
	"k8s.io/kubernetes/plugin/pkg/admission/eventratelimit"
	"k8s.io/kubernetes/plugin/pkg/admission/network/denyserviceexternalips"

	"federation/apiserver/pki"
)

// FrontOptions configure authentication, auditing, and other limits of users. They are those of kube-apiserver, with
// its names.
type FrontOptions struct {
	// Audit configures the audit log. The default policy is auditPolicy; the default log is a file in the data
	// directory.
	Audit *genericoptions.AuditOptions
	// AuthenticationConfig and AuthorizationConfig are files of these kinds of Kubernetes; "": client certificates and
	// service accounts; RBAC.
	AuthenticationConfig string
	AuthorizationConfig  string
	// EncryptionConfig is a file in place of pki/encryption.yaml.
	EncryptionConfig string
	// AdmissionPlugins are additional plugins, and AdmissionConfig is the file with their settings.
	AdmissionPlugins []string
	AdmissionConfig  string
	// ServiceAccountIssuers are the issuers of tokens: the first one issues, all are accepted. None: one derived from
	// the federation's authority.
	ServiceAccountIssuers []string
	// MaxTokenExpiration is the maximum lifetime of a service account token that may be requested.
	MaxTokenExpiration time.Duration
	// TracingConfig is a file with a TracingConfiguration; "": nothing is traced.
	TracingConfig string
	// Profiling serves /debug/pprof.
	Profiling bool
	// Console serves the console under /console/.
	Console     bool
	ConsoleOIDC ConsoleOIDCOptions
}

// offeredPlugins may be turned on; the other ones that are off are about Pods and Nodes.
var offeredPlugins = []string{eventratelimit.PluginName, denyserviceexternalips.PluginName}

func newFrontOptions() FrontOptions {
	audit := genericoptions.NewAuditOptions()
	audit.LogOptions.MaxSize, audit.LogOptions.MaxBackups, audit.LogOptions.MaxAge = 100, 10, 30
	return FrontOptions{Audit: audit, MaxTokenExpiration: 365 * 24 * time.Hour, Console: true}
}

// shownAuditFlags are in the help; the others work, too.
var shownAuditFlags = sets.New("audit-policy-file", "audit-log-path", "audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize", "audit-webhook-config-file")

func (o *FrontOptions) addFlags(fs *pflag.FlagSet) {
	audit := pflag.NewFlagSet("audit", pflag.ContinueOnError)
	o.Audit.AddFlags(audit)
	audit.VisitAll(func(f *pflag.Flag) { f.Hidden = !shownAuditFlags.Has(f.Name) })
	audit.Lookup("audit-policy-file").Usage = "`FILE` with the audit policy; without it one that logs who did what, never what Secrets hold. See docs/operations.md"
	audit.Lookup("audit-log-path").Usage = "`FILE` for the audit log, - for standard output; without it, and without --audit-webhook-config-file, audit/audit.log in the data directory"
	fs.AddFlagSet(audit)
	fs.StringVar(&o.AuthenticationConfig, "authentication-config", "", "`FILE` with an AuthenticationConfiguration (OIDC), beside client certificates and service accounts; it is read again when it changes")
	fs.StringVar(&o.AuthorizationConfig, "authorization-config", "", "`FILE` with an AuthorizationConfiguration; RBAC must be in it. Without it RBAC alone decides")
	fs.StringVar(&o.EncryptionConfig, "encryption-provider-config", "", "`FILE` with an EncryptionConfiguration, as for KMS; without it pki/encryption.yaml in the data directory, whose key must be in it as long as Secrets are encrypted with it")
	fs.StringSliceVar(&o.AdmissionPlugins, "enable-admission-plugins", nil, "admission plugins that run beside the others: "+strings.Join(offeredPlugins, ", "))
	fs.StringVar(&o.AdmissionConfig, "admission-control-config-file", "", "`FILE` with an AdmissionConfiguration: the settings of EventRateLimit")
	fs.StringArrayVar(&o.ServiceAccountIssuers, "service-account-issuer", nil, "`URL` that service account tokens say they are from; given again: another one that is accepted still. Without it one of this federation's own")
	fs.DurationVar(&o.MaxTokenExpiration, "service-account-max-token-expiration", o.MaxTokenExpiration, "for how long a service account token may be asked for, at most")
	fs.StringVar(&o.TracingConfig, "tracing-config-file", "", TracingUsage)
	fs.BoolVar(&o.Profiling, "profiling", false, "serve /debug/pprof to those who may get it")
	fs.BoolVar(&o.Console, "console", o.Console, "serve the console's pages below /console/; they hold no data and have no rights of their own")
	o.ConsoleOIDC.addFlags(fs)
}

func (o *FrontOptions) check() error {
	errs := append(o.Audit.Validate(), o.ConsoleOIDC.check())
	for flag, file := range map[string]string{
		"--audit-policy-file": o.Audit.PolicyFile, "--audit-webhook-config-file": o.Audit.WebhookOptions.ConfigFile, "--authentication-config": o.AuthenticationConfig,
		"--authorization-config": o.AuthorizationConfig, "--encryption-provider-config": o.EncryptionConfig, "--admission-control-config-file": o.AdmissionConfig,
	} {
		if _, err := os.Stat(file); file != "" && err != nil {
			errs = append(errs, fmt.Errorf("%s %q: must be a file that can be read: %w", flag, file, err))
		}
	}
	for _, name := range o.AdmissionPlugins {
		if !slices.Contains(offeredPlugins, name) {
			errs = append(errs, fmt.Errorf("--enable-admission-plugins %q: must be of %s", name, strings.Join(offeredPlugins, ", ")))
		}
	}
	if slices.Contains(o.AdmissionPlugins, eventratelimit.PluginName) && o.AdmissionConfig == "" {
		errs = append(errs, fmt.Errorf("--enable-admission-plugins %s: needs its limits in --admission-control-config-file", eventratelimit.PluginName))
	}
	if o.MaxTokenExpiration < time.Hour {
		errs = append(errs, fmt.Errorf("--service-account-max-token-expiration %s: must be at least 1h", o.MaxTokenExpiration))
	}
	if o.AuthorizationConfig != "" {
		if _, _, err := authorizer.LoadAndValidateFile(o.AuthorizationConfig, authorizationcel.NewDefaultCompiler(), sets.New(apiserver.AuthorizerType(modes.ModeRBAC))); err != nil {
			errs = append(errs, fmt.Errorf("--authorization-config %q: %w", o.AuthorizationConfig, err))
		}
	}
	if _, err := ReadTracing(o.TracingConfig); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// applyFront fills in Kubernetes' options, and writes default files.
func (c *Config) applyFront(o *options.Options, files *pki.Files) (err error) {
	f := c.FrontOptions
	if o.Audit, err = c.auditOptions(); err != nil {
		return err
	}
	if o.Authentication.AuthenticationConfigFile = f.AuthenticationConfig; f.AuthenticationConfig == "" {
		if o.Authentication.AuthenticationConfigFile, err = c.writeFile("authentication.yaml", authentication); err != nil {
			return err
		}
	}
	o.Authentication.Anonymous.Allow = false // unless the file says so
	if o.Authorization.AuthorizationConfigurationFile = f.AuthorizationConfig; f.AuthorizationConfig == "" {
		o.Authorization.Modes = []string{"RBAC"}
	}
	if o.Etcd.EncryptionProviderConfigFilepath = f.EncryptionConfig; f.EncryptionConfig == "" {
		o.Etcd.EncryptionProviderConfigFilepath = files.Encryption
	}
	o.Admission.GenericAdmission.EnablePlugins, o.Admission.GenericAdmission.ConfigFile = f.AdmissionPlugins, f.AdmissionConfig
	if o.Traces.ConfigFile, err = c.tracingFile(); err != nil {
		return err
	}
	o.Features.EnableProfiling = f.Profiling
	o.Authentication.ServiceAccounts.MaxExpiration = f.MaxTokenExpiration
	o.Authentication.ServiceAccounts.Issuers, err = f.issuers(files)
	return err
}

// firstIssuer is the issuer of tokens of earlier versions, the same in every federation. They are signed by our key, so
// they are still accepted.
const firstIssuer = "https://federation"

// issuers has the one of new tokens first.
func (o *FrontOptions) issuers(files *pki.Files) ([]string, error) {
	if len(o.ServiceAccountIssuers) > 0 {
		return o.ServiceAccountIssuers, nil
	}
	identity, err := files.Identity()
	if err != nil {
		return nil, err
	}
	return []string{firstIssuer + "-" + identity[:16], firstIssuer}, nil
}

// auditOptions returns the user's options, with our defaults.
func (c *Config) auditOptions() (*genericoptions.AuditOptions, error) {
	audit := *c.Audit
	if audit.LogOptions.Path == "" && audit.WebhookOptions.ConfigFile == "" {
		audit.LogOptions.Path = filepath.Join(c.DataDir, "audit", "audit.log")
		if err := os.MkdirAll(filepath.Dir(audit.LogOptions.Path), 0o700); err != nil {
			return nil, err
		}
	}
	if audit.PolicyFile != "" {
		return &audit, nil
	}
	var err error
	audit.PolicyFile, err = c.writeFile("audit-policy.yaml", auditPolicy)
	return &audit, err
}

// writeFile writes a file that the data directory has for people to see, and Kubernetes' code to read.
func (c *Config) writeFile(name, content string) (path string, err error) {
	path = filepath.Join(c.DataDir, name)
	return path, os.WriteFile(path, []byte("# Written at each start of the apiserver: to change it, copy it and name the copy by its flag.\n"+content), 0o600)
}

// authentication lets load balancers and the like check the health without a credential, and nothing else.
const authentication = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
  - path: /livez
  - path: /readyz
`

// auditPolicy logs who did what, and the content of writes about clusters and permissions. It never logs the content of
// credentials.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
# Health, discovery, metrics
- level: None
  nonResourceURLs: ["/livez*", "/readyz*", "/healthz*", "/metrics*", "/version*", "/openapi*", "/api", "/api/*", "/apis", "/apis/*"]
# Credentials that somebody makes or changes, the federation itself too; never what they are
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: "", resources: [secrets, serviceaccounts/token]}
# What the federation does by itself
- level: None
  users: ["system:federation-controllers", "system:apiserver"]
- level: Metadata
  resources:
  - {group: "", resources: [secrets, configmaps, serviceaccounts/token]}
  - {group: authentication.k8s.io}
  - {group: federation, resources: [clusters/proxy, clusters/inspect]}
# What decides about clusters, and who may do what
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: federation}
  - {group: rbac.authorization.k8s.io}
- level: Metadata
`
