package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/pki"
	"federation/clusterregistry/credential"
	"federation/clusterregistry/join"
	"federation/clusterregistry/tunnel"
)

// hostileHub is a federation in wrong hands, with all that the real one has on its disk: agents trust it, and it asks them what it likes. It returns how it
// reaches the member behind the wire through its agent, and the dialer below.
func hostileHub(t *testing.T) (*rest.Config, func(context.Context) (net.Conn, error)) {
	t.Helper()
	u, err := s.fed.dyn.Resource(v1beta1.ClustersResource).Get(t.Context(), beyond, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files := pki.FilesIn(filepath.Join(s.dir, "federation"))
	serving, err := tls.LoadX509KeyPair(files.ServingCert, files.ServingKey)
	if err != nil {
		t.Fatal(err)
	}
	hub := tunnel.NewHub("hostile")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hub.Park(w, r, u.GetUID()) }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	pull(t, beyond, "--server="+server.URL)
	eventually(t, 30*time.Second, func() string {
		if _, connected := hub.Agent(u.GetUID()); !connected {
			return "its agent is not connected to the hostile federation"
		}
		return ""
	})
	return credential.ThroughAgent(u.GetUID(), hub.Dial), func(ctx context.Context) (net.Conn, error) { return hub.Dial(ctx, u.GetUID()) }
}

// TestAHostileHub: whoever has all of the federation asks the agent of a member for everything that would give more than what the federation has put there.
// The member refuses, or its agent.
func TestAHostileHub(t *testing.T) {
	config, dial := hostileHub(t)
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := join.FederationUID(t.Context(), s.fed.client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, admin, account := t.Context(), s.members[beyond].client, join.AccountName(uid)
	if _, err := admin.CoreV1().ConfigMaps(ns).Create(ctx, configMap("theirs"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	remove(t, func(ctx context.Context) error {
		return admin.CoreV1().ConfigMaps(ns).Delete(ctx, "theirs", metav1.DeleteOptions{})
	})
	mine := metav1.ObjectMeta{Name: "hostile", Labels: map[string]string{v1beta1.ManagedByLabel: uid}}
	if _, err := hub.CoreV1().ConfigMaps(ns).Create(ctx, &corev1.ConfigMap{ObjectMeta: mine}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("it may do what the federation does: %v", err) // or nothing below would tell anything
	}
	remove(t, func(ctx context.Context) error {
		return admin.CoreV1().ConfigMaps(ns).Delete(ctx, "hostile", metav1.DeleteOptions{})
	})
	tries := hostileTries(ctx, hub, mine)
	maps.Copy(tries, hostileRights(ctx, hub, mine, account))
	for what, try := range tries {
		if err := try(); err == nil || !strings.Contains(err.Error(), "forbidden") { // by rights 403, by a fence 422
			t.Errorf("%s: %v, want that it is forbidden", what, err)
		}
	}
	everybody := rest.CopyConfig(config)
	everybody.Impersonate = rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters"}}
	as, err := kubernetes.NewForConfig(everybody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := as.CoreV1().ConfigMaps(ns).Get(ctx, "theirs", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("as an administrator of the member: %v, want that it is forbidden", err)
	}
	if is, err := admin.CoreV1().ConfigMaps(ns).Get(ctx, "theirs", metav1.GetOptions{}); err != nil || is.Data["key"] != "value" || len(is.Labels) > 0 {
		t.Errorf("what is the member's own is %+v, %v", is, err)
	}
	reachesNoOtherPort(t, dial)
}

// hostileTries are what the federation's account would have to be allowed to do for a member to be taken over, each by what it is.
func hostileTries(ctx context.Context, hub kubernetes.Interface, mine metav1.ObjectMeta) map[string]func() error {
	const system = metav1.NamespaceSystem
	configMaps := hub.CoreV1().ConfigMaps
	create, remove, patch := metav1.CreateOptions{}, metav1.DeleteOptions{}, metav1.PatchOptions{}
	label := []byte(`{"metadata":{"labels":{"` + v1beta1.ManagedByLabel + `":"` + mine.Labels[v1beta1.ManagedByLabel] + `"}},"data":{"key":"hostile"}}`)
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}}
	set := &appsv1.DaemonSet{ObjectMeta: mine, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: pod}}}
	return map[string]func() error{
		"a foreign object, changed": func() error {
			_, err := configMaps(ns).Patch(ctx, "theirs", types.MergePatchType, label, patch)
			return err
		},
		"a foreign object, deleted": func() error { return configMaps(ns).Delete(ctx, "theirs", remove) },
		"a foreign object, made":    func() error { _, err := configMaps(ns).Create(ctx, configMap("foreign"), create); return err },
		"an object in kube-system": func() error {
			_, err := configMaps(system).Create(ctx, &corev1.ConfigMap{ObjectMeta: mine}, create)
			return err
		},
		"kube-system's own, changed": func() error {
			_, err := configMaps(system).Patch(ctx, "kube-root-ca.crt", types.MergePatchType, label, patch)
			return err
		},
		"the namespace kube-system":        func() error { return hub.CoreV1().Namespaces().Delete(ctx, system, remove) },
		"the switch that pauses the agent": func() error { return configMaps(v1beta1.FederationNamespace).Delete(ctx, join.AgentConfigMap, remove) },
		"privileged pods":                  func() error { _, err := hub.AppsV1().DaemonSets(ns).Create(ctx, set, create); return err },
		"a pod": func() error {
			_, err := hub.CoreV1().Pods(ns).Create(ctx, &corev1.Pod{ObjectMeta: mine, Spec: pod}, create)
			return err
		},
		"exec": func() error {
			return hub.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").Name("any").SubResource("exec").Do(ctx).Error()
		},
		"a webhook": func() error {
			_, err := hub.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: mine}, create)
			return err
		},
		"a node, by the API server": func() error {
			return hub.CoreV1().RESTClient().Get().Resource("nodes").Name("any").SubResource("proxy").Do(ctx).Error()
		},
		"a node, marked": func() error {
			_, err := hub.CoreV1().Nodes().Patch(ctx, "any", types.MergePatchType, label, patch)
			return err
		},
	}
}

// hostileRights are ways to more rights than the federation's account has, each by what it is.
func hostileRights(ctx context.Context, hub kubernetes.Interface, mine metav1.ObjectMeta, account string) map[string]func() error {
	rbac, create := hub.RbacV1(), metav1.CreateOptions{}
	all := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: v1beta1.FederationNamespace, Name: account}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	token := func(namespace, name string) func() error {
		return func() error {
			_, err := hub.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, create)
			return err
		}
	}
	return map[string]func() error{
		"more rights for itself": func() error {
			_, err := rbac.ClusterRoles().Update(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: all}, metav1.UpdateOptions{})
			return err
		},
		"another role": func() error {
			_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: mine, Rules: all}, create)
			return err
		},
		"an administrator's role": func() error {
			_, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: mine, Subjects: subjects, RoleRef: ref}, create)
			return err
		},
		"a role in one namespace": func() error {
			_, err := rbac.RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: mine, Subjects: subjects, RoleRef: ref}, create)
			return err
		},
		"its own fence": func() error {
			return hub.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, account, metav1.DeleteOptions{})
		},
		"a token of its own account": token(v1beta1.FederationNamespace, account),
		"a token of another account": token(ns, "default"),
		"a Secret that is a token": func() error {
			secret := &corev1.Secret{ObjectMeta: *mine.DeepCopy(), Type: corev1.SecretTypeServiceAccountToken}
			secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
			_, err := hub.CoreV1().Secrets(ns).Create(ctx, secret, create)
			return err
		},
	}
}

// reachesNoOtherPort: whatever a request names, the agent connects to nothing but the API server.
func reachesNoOtherPort(t *testing.T, dial func(context.Context) (net.Conn, error)) {
	t.Helper()
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var came atomic.Int64
	go func() {
		for c, err := other.Accept(); err == nil; c, err = other.Accept() {
			came.Add(1)
			_ = c.Close()
		}
	}()
	at := other.Addr().String()
	for _, line := range []string{"GET http://" + at + "/", "GET //" + at + "/", "CONNECT " + at} {
		c, err := dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", line, at); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second)) // the answer is of the API server
		said, _ := io.ReadAll(io.LimitReader(c, 4096))
		_ = c.Close()
		if len(said) == 0 {
			t.Errorf("%s: no answer", line)
		}
	}
	if n := came.Load(); n > 0 {
		t.Errorf("the agent connected to another port %d times", n)
	}
}

// TestNoTokenOfAMemberIsAtTheFederation: no part of the tokens that agents use, in whatever encoding, is in the memory of the federation's process, on its disk or in
// a Secret. The same search finds every part in the agents' memory.
func TestNoTokenOfAMemberIsAtTheFederation(t *testing.T) {
	if !pullMode {
		t.Skip("runs with members in pull mode (make e2e-pull): the federation has tokens of the others")
	}
	uid, err := join.FederationUID(t.Context(), s.fed.client)
	if err != nil {
		t.Fatal(err)
	}
	applyConfigMap(t, "without-tokens") // something to send
	copies(t, "without-tokens", names...)
	parts := map[string]string{} // of tokens, and whose they are
	for _, member := range names {
		agent := s.pid(t, "members", member, "agent", "pid")
		found := partsOfTokens(memory(t, agent), "system:serviceaccount:"+v1beta1.FederationNamespace+":"+join.AccountName(uid))
		if len(found) == 0 {
			t.Fatalf("the agent of %s has no token in its memory: the search is wrong", member)
		}
		for part, of := range found {
			parts[part] = of + " of " + member
		}
	}
	hub := memory(t, s.pid(t, "federation.pid"))
	if !bytes.Contains(hub, []byte("without-tokens")) {
		t.Fatal("what is known to be in the federation's memory is not found")
	}
	reportParts(t, "the federation's memory", hub, parts)
	var size, stored int
	err = filepath.WalkDir(filepath.Join(s.dir, "federation"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		size += len(content)
		stored += bytes.Count(content, []byte("/without-tokens")) // the key that etcd has it by
		reportParts(t, path, content, parts)
		return err
	})
	if err != nil || stored == 0 {
		t.Fatalf("what is known to be on the disk is not found: %v", err)
	}
	secrets, err := s.fed.client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range secrets.Items { // which are encrypted on the disk
		for _, value := range secrets.Items[i].Data {
			reportParts(t, "Secret "+secrets.Items[i].Name, value, parts)
		}
	}
	t.Logf("%d parts of tokens were looked for in %d MiB of memory, %d MiB on the disk and %d Secrets", len(parts), len(hub)>>20, size>>20, len(secrets.Items))
}

// reportParts fails the test if there is a part of a token.
func reportParts(t *testing.T, where string, content []byte, parts map[string]string) {
	t.Helper()
	for part, of := range parts {
		if bytes.Contains(content, []byte(part)) {
			t.Errorf("%s has %s", where, of)
		}
	}
}

var (
	mapping = regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) r.*$`)
	jwt     = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{20,}\.(eyJ[A-Za-z0-9_-]{20,})\.([A-Za-z0-9_-]{80,})`)
)

// memory is all that a process can read of its own memory.
func memory(t *testing.T, pid int) (all []byte) {
	t.Helper()
	mappings, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	for _, m := range mapping.FindAllSubmatch(mappings, -1) {
		from, err1 := strconv.ParseInt(string(m[1]), 16, 64)
		to, err2 := strconv.ParseInt(string(m[2]), 16, 64)
		if err1 != nil || err2 != nil { // the page of system calls is beyond
			continue
		}
		content, _ := io.ReadAll(io.NewSectionReader(mem, from, to-from)) // what cannot be read, as [vvar], is not the process's
		all = append(all, content...)
	}
	return all
}

// partsOfTokens are pieces of the signatures of all tokens for a subject, as text and as bytes.
func partsOfTokens(memory []byte, subject string) map[string]string {
	const size = 16
	parts := map[string]string{}
	for _, m := range jwt.FindAllSubmatch(memory, -1) {
		claims, err1 := base64.RawURLEncoding.DecodeString(string(m[1]))
		signature, err2 := base64.RawURLEncoding.DecodeString(string(m[2]))
		var says struct{ Sub string }
		if err1 != nil || err2 != nil || json.Unmarshal(claims, &says) != nil || says.Sub != subject {
			continue
		}
		for as, content := range map[string][]byte{"text": m[2], "bytes": signature} {
			for i := 0; i+size <= len(content); i += size {
				parts[string(content[i:i+size])] = fmt.Sprintf("bytes %d to %d of the signature of a token, as %s,", i, i+size, as)
			}
		}
	}
	return parts
}
