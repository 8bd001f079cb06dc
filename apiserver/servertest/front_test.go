package servertest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/serviceaccount"
	"sigs.k8s.io/yaml"

	"federation/apiserver/apis/federation/v1beta1"
)

// audited returns the shared server's audit events of a resource.
func audited(t *testing.T, resource, subresource, name string) (found []auditv1.Event) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(shared.dataDir, "audit", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(log, []byte("\n")) {
		e := auditv1.Event{}
		if json.Unmarshal(line, &e) == nil && e.ObjectRef != nil && e.ObjectRef.Resource == resource && e.ObjectRef.Subresource == subresource && e.ObjectRef.Name == name {
			found = append(found, e)
		}
	}
	return found
}

func TestWhoDidWhatIsInTheAuditLog(t *testing.T) {
	var asked http.Request
	server := member(t, &asked)
	newCluster(t, "audited", strings.TrimPrefix(server.URL, "https://"))
	newMemberSecret(t, "audited", server, `token: not-for-the-log`)
	secrets := shared.kube.CoreV1().Secrets("default")
	if _, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "audited"}, StringData: map[string]string{"key": "not-for-the-log"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Get(t.Context(), "audited", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.kube.CoreV1().RESTClient().Get().AbsPath("/apis/federation/v1beta1/clusters/audited/proxy/api/v1/pods").DoRaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	controllers, err := dynamic.NewForConfig(shared.server.ControllersConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := controllers.Resource(v1beta1.ClustersResource).Patch(t.Context(), "audited", types.MergePatchType, []byte(`{"status":{"region":"east"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{
		"secrets//audited": "create Metadata federation-admin, get Metadata federation-admin", "clusters//audited": "create Request federation-admin",
		"clusters/proxy/audited": "get Metadata federation-admin", "clusters/status/audited": "",
	} {
		p := strings.Split(what, "/")
		var got []string
		for _, e := range audited(t, p[0], p[1], p[2]) {
			if e.ObjectRef.Namespace == v1beta1.FederationNamespace || e.Stage != auditv1.StageResponseComplete {
				continue
			}
			got = append(got, fmt.Sprint(e.Verb, " ", e.Level, " ", e.User.Username))
			if (e.RequestObject != nil) != (e.Level == auditv1.LevelRequest) || e.ResponseObject != nil {
				t.Errorf("%s %s: request %v, response %v", e.Verb, what, e.RequestObject, e.ResponseObject)
			}
		}
		if is := strings.Join(got, ", "); is != want {
			t.Errorf("%s: logged %q, want %q", what, is, want)
		}
	}
	log, err := os.ReadFile(filepath.Join(shared.dataDir, "audit", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"not-for-the-log", base64.StdEncoding.EncodeToString([]byte("not-for-the-log")), "/readyz"} {
		if bytes.Contains(log, []byte(secret)) {
			t.Errorf("the audit log has %q", secret)
		}
	}
	if info, err := os.Stat(filepath.Join(shared.dataDir, "audit", "audit.log")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestProfilesAreNotServed(t *testing.T) {
	if _, err := shared.kube.Discovery().RESTClient().Get().AbsPath("/debug/pprof/").DoRaw(t.Context()); !apierrors.IsNotFound(err) {
		t.Errorf("/debug/pprof/: %v", err)
	}
}

// Each federation has its own issuer; tokens of the issuer of earlier versions are still accepted.
func TestServiceAccountTokens(t *testing.T) {
	account, err := shared.kube.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "issued"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	long := int64((10 * 365 * 24 * time.Hour).Seconds())
	token, err := shared.kube.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account.Name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &long}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claims := struct {
		Iss      string
		Exp, Iat float64
	}{}
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token.Status.Token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(claims.Iss, "https://federation-") {
		t.Errorf("issuer %q is that of every federation", claims.Iss)
	}
	if life := claims.Exp - claims.Iat; life > 365*24*3600 {
		t.Errorf("the token lasts %v days", life/24/3600)
	}
	key, err := keyutil.PrivateKeyFromFile(filepath.Join(shared.dataDir, "pki", "service-account.key"))
	if err != nil {
		t.Fatal(err)
	}
	old := signed(t, account, "https://federation", key)
	for _, token := range []string{token.Status.Token, old} {
		if name, err := whoIs(shared, token); err != nil || name != "system:serviceaccount:default:issued" {
			t.Errorf("%q, %v", name, err)
		}
	}
}

// signed returns a token of an account that a key has signed.
func signed(t *testing.T, account *corev1.ServiceAccount, issuer string, key any) string {
	t.Helper()
	generator, err := serviceaccount.JWTTokenGenerator(issuer, key)
	if err != nil {
		t.Fatal(err)
	}
	claims, private, err := serviceaccount.Claims(core.ServiceAccount{ObjectMeta: account.ObjectMeta}, nil, nil, nil, 3600, 0, []string{issuer})
	if err != nil {
		t.Fatal(err)
	}
	token, err := generator.GenerateToken(t.Context(), claims, private)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// newKey makes a key and writes it.
func newKey(t *testing.T, path string) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// whoIs returns the user of a token by a server.
func whoIs(r *running, token string) (string, error) {
	config := rest.AnonymousClientConfig(r.admin)
	config.BearerToken = token
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := kube.AuthenticationV1().SelfSubjectReviews().Create(context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// idp is an identity provider that signs tokens.
type idp struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &idp{key: key}
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/.well-known/openid-configuration" {
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["ES256"]}`, p.URL, p.URL+"/keys")
			return
		}
		fmt.Fprintf(w, `{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"k","x":%q,"y":%q}]}`, word(key.X), word(key.Y))
	}))
	t.Cleanup(p.Close)
	return p
}

func word(n *big.Int) string {
	return base64.RawURLEncoding.EncodeToString(n.FillBytes(make([]byte, 32)))
}

func (p *idp) token(t *testing.T, user string) string {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"k"}`)) + "." + base64.RawURLEncoding.EncodeToString(
		fmt.Appendf(nil, `{"iss":%q,"aud":"federation","sub":%q,"iat":%d,"exp":%d}`, p.URL, user, time.Now().Unix(), time.Now().Add(time.Hour).Unix()))
	hash := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, hash[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// file writes a file of YAML, as JSON.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.json")
	data, err := yaml.YAMLToJSON([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A server with every file that an administrator may configure.
func TestAServerWithFilesOfItsAdministrator(t *testing.T) {
	provider := newIDP(t)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: provider.Certificate().Raw}))
	o := options(t.TempDir())
	o.Profiling = true
	o.AdmissionPlugins = []string{"DenyServiceExternalIPs", "EventRateLimit"}
	o.AdmissionConfig = file(t, `{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: EventRateLimit, configuration: {
 apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [{type: Namespace, qps: 1, burst: 2, cacheSize: 100}]}}]}`)
	o.AuthorizationConfig = file(t, `{apiVersion: apiserver.config.k8s.io/v1, kind: AuthorizationConfiguration, authorizers: [{type: RBAC, name: rbac}]}`)
	o.AuthenticationConfig = file(t, fmt.Sprintf(`{apiVersion: apiserver.config.k8s.io/v1, kind: AuthenticationConfiguration, jwt: [
 {issuer: {url: %q, audiences: [federation], certificateAuthority: %q}, claimMappings: {username: {claim: sub, prefix: "oidc:"}}}]}`, provider.URL, ca))
	key := base64.StdEncoding.EncodeToString(make([]byte, 32))
	o.EncryptionConfig = file(t, `{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: [{resources: [secrets], providers: [{aesgcm: {keys: [{name: mine, secret: `+key+`}]}}]}]}`)
	o.ServiceAccountIssuers = []string{"https://issuer.example.com"}
	policy := file(t, `{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata, resources: [{group: "", resources: [services]}]}, {level: None}]}`)
	o.Audit.PolicyFile, o.Audit.LogOptions.Path = policy, filepath.Join(t.TempDir(), "mine.log")
	before := newKey(t, filepath.Join(o.DataDir, "pki", "service-account-before.key"))
	r, err := start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	}()
	account, err := r.kube.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "rotated"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if name, err := whoIs(r, signed(t, account, o.ServiceAccountIssuers[0], before)); err != nil || name != "system:serviceaccount:default:rotated" {
		t.Errorf("a token that was signed by the key of before: %q, %v", name, err)
	}
	if _, err := r.kube.Discovery().RESTClient().Get().AbsPath("/debug/pprof/").DoRaw(t.Context()); err != nil {
		t.Errorf("profiling: %v", err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{ExternalIPs: []string{"192.0.2.1"}, Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := r.kube.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "external IPs is denied") {
		t.Errorf("an external IP: %v", err)
	}
	if log, err := os.ReadFile(o.Audit.LogOptions.Path); err != nil || !bytes.Contains(log, []byte(`"verb":"create","user":{"username":"federation-admin"`)) || bytes.Contains(log, []byte(`"resource":"namespaces"`)) {
		t.Errorf("the administrator's audit log: %s, %v", log, err)
	}
	eventually(t, "OIDC", func(context.Context) error { // the provider's keys are fetched in the background
		if name, err := whoIs(r, provider.token(t, "jane")); err != nil || name != "oidc:jane" {
			return fmt.Errorf("%q: %w", name, err)
		}
		return nil
	})
	if _, err := r.kube.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("a Secret: %v", err)
	}
	var limited error
	for i := 0; i < 10 && limited == nil; i++ {
		_, limited = r.kube.CoreV1().Events("default").Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("e", i)}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}}, metav1.CreateOptions{})
	}
	if !apierrors.IsTooManyRequests(limited) {
		t.Errorf("a flood of events: %v", limited)
	}
}
