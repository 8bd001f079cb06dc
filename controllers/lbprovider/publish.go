package lbprovider

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"federation/controllers/lbprovider/plan"
)

// requestTimeout bounds a request, retryAfter is the pause after one that failed.
const requestTimeout, retryAfter = 5 * time.Second, time.Second

// publisher writes what Services get into their status.
type publisher struct {
	*Provider
	// newer has what is newer than the cache, by UID: what was written, and what a list at take-over had. It counts while the cache has the version from.
	newer map[types.UID]newer
	said  map[types.UID]string // the last event about each Service
}

type newer struct {
	from string
	is   *corev1.Service
}

// runPublish writes the status of Services while this provider holds the Lease, until ctx ends.
func (p *Provider) runPublish(ctx context.Context) {
	w := &publisher{Provider: p}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-p.publish:
		}
		if !p.holds() {
			w.newer = nil // another one writes
			continue
		}
		if err := w.publishAll(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Cannot write the status of Services, will try again", "after", retryAfter)
			time.AfterFunc(retryAfter, p.publish.Signal)
		}
	}
}

// publishAll writes the status of each of our Services that differs.
func (w *publisher) publishAll(ctx context.Context) error {
	if w.newer == nil {
		if err := w.takeOver(ctx); err != nil {
			return fmt.Errorf("reading Services: %w", err)
		}
	}
	services := w.latest()
	verdicts := w.Allocate(services)
	var errs []error
	for _, s := range services {
		v, ours := verdicts[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}]
		if !ours {
			continue
		}
		w.say(s, v)
		if v.OfAnother || sameStatus(s, v.Addresses) {
			continue
		}
		if err := w.write(ctx, s, v.Addresses); err != nil && len(errs) < 10 { // the first tell enough
			errs = append(errs, fmt.Errorf("%s/%s: %w", s.Namespace, s.Name, err))
		}
		if !w.holds() || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// takeOver reads what the provider before may have written since the cache heard of it.
func (w *publisher) takeOver(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	live, err := w.Kube.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	w.newer, w.said = map[types.UID]newer{}, map[types.UID]string{}
	for i := range live.Items {
		is := &live.Items[i]
		if cached, err := w.services.Services(is.Namespace).Get(is.Name); err == nil && cached.ResourceVersion != is.ResourceVersion {
			w.newer[is.UID] = newer{cached.ResourceVersion, is}
		}
	}
	return nil
}

// latest returns all Services, as far as is known.
func (w *publisher) latest() []*corev1.Service {
	services := list(func() ([]*corev1.Service, error) { return w.services.List(labels.Everything()) })
	stays := map[types.UID]newer{}
	for i, s := range services {
		if n, ok := w.newer[s.UID]; ok && n.from == s.ResourceVersion {
			stays[s.UID], services[i] = n, n.is
		}
	}
	w.newer = stays
	return services
}

func (w *publisher) write(ctx context.Context, s *corev1.Service, addresses []netip.Addr) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	from, change := s.ResourceVersion, s.DeepCopy()
	if n, ok := w.newer[s.UID]; ok {
		from = n.from
	}
	change.Status.LoadBalancer = statusOf(addresses)
	is, err := w.Kube.CoreV1().Services(s.Namespace).UpdateStatus(ctx, change, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // it has changed: its event comes
	}
	if err != nil {
		return err
	}
	w.newer[s.UID] = newer{from, is}
	klog.InfoS("Addresses of a Service", "service", klog.KObj(s), "addresses", addresses, "before", plan.Recorded(s))
	if len(addresses) > 0 {
		w.events.Eventf(s, corev1.EventTypeNormal, "AddressesAssigned", "The load balancer has %s", texts(addresses))
	}
	return nil
}

// say tells by an event why a Service lacks something, once.
func (w *publisher) say(s *corev1.Service, v plan.Verdict) {
	text := v.Reason + v.Message
	if w.said[s.UID] == text {
		return
	}
	if w.said[s.UID] = text; v.Reason != "" {
		w.events.Event(s, corev1.EventTypeWarning, v.Reason, v.Message)
	}
}

// statusOf returns the status of these addresses. Packets reach nodes with an address of the node, which is the mode Proxy (KEP-1860).
func statusOf(addresses []netip.Addr) (out corev1.LoadBalancerStatus) {
	mode := corev1.LoadBalancerIPModeProxy
	for _, a := range addresses {
		out.Ingress = append(out.Ingress, corev1.LoadBalancerIngress{IP: a.String(), IPMode: &mode})
	}
	return out
}

func sameStatus(s *corev1.Service, addresses []netip.Addr) bool {
	return slices.EqualFunc(s.Status.LoadBalancer.Ingress, statusOf(addresses).Ingress, func(a, b corev1.LoadBalancerIngress) bool {
		return a.IP == b.IP && a.Hostname == "" && (a.IPMode == nil || *a.IPMode == *b.IPMode) // nil: a cluster that has no modes yet
	})
}

func texts(addresses []netip.Addr) string {
	var out []string
	for _, a := range addresses {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}
