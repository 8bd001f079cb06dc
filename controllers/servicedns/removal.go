package servicedns

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/dnsprovider"
)

// removal is what a publisher holds back in its first pass (ADR 77). A federation whose store was lost or restored
// knows nothing of what runs. A process that has just started does not remove more than half of a zone.
type removal struct {
	// names stay in the zone though nothing is known of them; of is how many names of ours it had.
	names map[string]bool
	of    int
	// approved: a person has approved the removal.
	approved bool
}

// approvalTimeout bounds a request to the federation's API.
const approvalTimeout = 5 * time.Second

func setNames(sets []dnsprovider.RRSet) map[string]bool {
	names := map[string]bool{}
	for _, set := range sets {
		names[set.Name] = true
	}
	return names
}

// holdBack removes from have what must stay, if the first pass would remove too many names.
func (r *removal) holdBack(have, next []dnsprovider.RRSet) []dnsprovider.RRSet {
	there, wanted := setNames(have), setNames(next)
	r.names, r.of = map[string]bool{}, len(there)
	for name := range there {
		if !wanted[name] {
			r.names[name] = true
		}
	}
	if r.approved || 2*len(r.names) <= r.of {
		r.names = nil
	}
	return r.withoutHeld(have)
}

// release drops names that are wanted after all, or are gone.
func (r *removal) release(have, want []dnsprovider.RRSet) {
	if len(r.names) == 0 {
		return
	}
	there, wanted := setNames(have), setNames(want)
	maps.DeleteFunc(r.names, func(name string, _ bool) bool { return wanted[name] || !there[name] })
}

// withoutHeld returns have without the names held back.
func (r *removal) withoutHeld(have []dnsprovider.RRSet) []dnsprovider.RRSet {
	if len(r.names) == 0 {
		return have
	}
	return slices.DeleteFunc(slices.Clone(have), func(set dnsprovider.RRSet) bool { return r.names[set.Name] })
}

// describeIn adds to the state how many names are held back, and how to approve them.
func (r *removal) describeIn(s *ProviderState) {
	s.Published, s.Reason = false, ReasonRemovalPendingApproval
	s.Message = fmt.Sprintf("%d of %d names in the zone are of nothing that the federation knows, as after its store was lost, and stay: %s; to have them removed: "+
		"kubectl annotate -n %s configmap %s %s=%s", len(r.names), r.of, joinSome(slices.Sorted(maps.Keys(r.names))),
		v1beta1.FederationNamespace, v1beta1.DNSProvidersConfigMap, v1beta1.RemoveNamesAnnotation, s.Provider)
}

// readApproval reads whether a person has approved the removal. If so, the next pass is like the first one, but holds
// nothing back.
func (p *publisher) readApproval(ctx context.Context) bool {
	if len(p.removal.names) == 0 || p.kube == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, approvalTimeout)
	defer cancel()
	m, err := p.kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace).Get(ctx, v1beta1.DNSProvidersConfigMap, metav1.GetOptions{})
	if err != nil || !slices.Contains(approvedFor(m), p.Name) {
		return false
	}
	p.removal = removal{approved: true}
	p.trusted, p.applied = false, nil
	return true
}

// approvedFor returns the providers named in the annotation.
func approvedFor(m metav1.Object) (providers []string) {
	for name := range strings.SplitSeq(m.GetAnnotations()[v1beta1.RemoveNamesAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			providers = append(providers, name)
		}
	}
	return providers
}

// clearApproval removes an approval that was used: the next time is a new decision.
func (p *publisher) clearApproval(ctx context.Context) {
	p.removal.approved = false
	ctx, cancel := context.WithTimeout(ctx, approvalTimeout)
	defer cancel()
	configMaps := p.kube.CoreV1().ConfigMaps(v1beta1.FederationNamespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		m, err := configMaps.Get(ctx, v1beta1.DNSProvidersConfigMap, metav1.GetOptions{})
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(approvedFor(m), func(name string) bool { return name == p.Name })
		if m.Annotations[v1beta1.RemoveNamesAnnotation] = strings.Join(left, ","); len(left) == 0 {
			delete(m.Annotations, v1beta1.RemoveNamesAnnotation)
		}
		_, err = configMaps.Update(ctx, m, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		klog.ErrorS(err, "Cannot remove the approval to remove names; remove it by hand", "provider", p.Name, "configMap", v1beta1.DNSProvidersConfigMap, "annotation", v1beta1.RemoveNamesAnnotation)
	}
}
