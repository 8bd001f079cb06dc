package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestProxyForTheAdministrator: a cluster that joined with --allow-proxy lets in who asks through the federation, by a client certificate and
// in the group of the federation's administrators, which join binds there.
func TestProxyForTheAdministrator(t *testing.T) {
	const member = "east-b"
	pods := func() (string, error) {
		b, err := s.fed.client.Discovery().RESTClient().Get().AbsPath("/apis/federation/v1beta1/clusters/" + member + "/proxy/api/v1/namespaces/default/pods").DoRaw(t.Context())
		return string(b), err
	}
	if _, err := pods(); !apierrors.IsForbidden(err) {
		t.Errorf("without --allow-proxy: %v", err)
	}
	t.Cleanup(func() { joinAgain(t, member) })
	joinAgain(t, member, "--allow-proxy")
	eventually(t, 30*time.Second, func() string { // the member's authorizer follows
		list, err := pods()
		if err != nil || !strings.Contains(list, `"PodList"`) {
			return fmt.Sprint(list, err)
		}
		return ""
	})
}
