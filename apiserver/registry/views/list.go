package views

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/scheme"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
)

// part is one member's part of a list.
type part struct {
	items   []object
	version string
	next    string // where its next page begins; "": that was all
	sent    int    // how many objects it sent
	dropped int    // of these, that was none of what was asked for
}

// List asks all members that may have selected objects. With a limit it returns pages: see cursor.
func (r *REST) List(ctx context.Context, o *metainternalversion.ListOptions) (runtime.Object, error) {
	if o == nil {
		o = &metainternalversion.ListOptions{}
	}
	if o.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return nil, errors.NewResourceExpired("lists as of a version are not kept: list without one")
	}
	clusters := r.members.all()
	by, err := r.selection(ctx, o, clusters)
	if err != nil {
		return nil, err
	}
	at, err := parseCursor(o.Continue)
	if err != nil {
		return nil, err
	}
	page, namespace := at.nextPage(clusters, by, o.Limit), r.namespace(ctx)
	if !r.isShown(ctx, namespace) {
		page.clusters = nil
	}
	answers := askAll(ctx, r.members, page.clusters, func(ctx context.Context, l *link) (part, error) {
		return r.listAt(ctx, l, namespace, by, metav1.ListOptions{Limit: page.each, Continue: at.Open[l.cluster]})
	})
	return r.merge(ctx, answers, page)
}

// isShown reports whether anything of a namespace is shown, "" for all, and warns the client if nothing is.
func (r *REST) isShown(ctx context.Context, namespace string) bool {
	if !r.kind.namespaced || namespace == "" || r.namespaces.has(namespace) {
		return true
	}
	if v1beta1.OwnNamespace(namespace) {
		warning.AddWarning(ctx, "", namespace+": "+errProtected.Error())
	}
	return false
}

// merge makes one list of the members' responses, in the order of the names.
func (r *REST) merge(ctx context.Context, answers []answer[part], page page) (runtime.Object, error) {
	var all []object
	if page.had == nil {
		page.had = map[string]int{}
	}
	vector, owners, next := map[string]string{}, r.owners.lookup(), map[string]string{}
	for i, a := range answers {
		switch {
		case (errors.IsResourceExpired(a.err) || errors.IsGone(a.err)) && page.version != "" && r.versions.mayHaveExpired(givenAt(page.version)):
			return nil, errors.NewResourceExpired(fmt.Sprintf("cluster %s: %s", a.cluster, shortReason(a.err)))
		case a.err != nil:
			continue
		}
		vector[a.cluster] = a.value.version
		if a.value.next != "" {
			if page.had[a.cluster] += a.value.sent; page.had[a.cluster] > maxObjects || a.value.sent == 0 {
				answers[i].err = fmt.Errorf("it continues a list after %d objects, with %d on this page", page.had[a.cluster], a.value.sent)
				continue
			}
			next[a.cluster] = a.value.next
		}
		for _, o := range a.value.items {
			if r.kind.show(ctx, o, a.cluster, owners) {
				all = append(all, o)
			} else {
				a.value.dropped++
			}
		}
		if n := a.value.dropped; n > 0 {
			answers[i].err = fmt.Errorf("it sends %d objects that are none of what it was asked for", n)
		}
	}
	warnClient(ctx, answers)
	slices.SortFunc(all, func(a, b object) int {
		if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
			return c
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	list := r.kind.makeList()
	items := make([]runtime.Object, len(all))
	for i, o := range all {
		items[i] = o
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	if page.version == "" {
		page.version = r.versions.note(vector)
	}
	about.SetResourceVersion(page.version)
	about.SetContinue(page.next(next))
	return list, nil
}

// listAt asks one member. It reads the member's namespaces at the same time.
func (r *REST) listAt(ctx context.Context, l *link, namespace string, by selected, o metav1.ListOptions) (part, error) {
	var any bool
	if o.LabelSelector, o.FieldSelector, any = by.selectorsFor(l.cluster); !any {
		return part{}, nil
	}
	if o.Limit == 0 {
		o.ResourceVersion = "0"
	}
	var list runtime.Object
	var ours map[string]bool
	group, ctx := errgroup.WithContext(ctx)
	if r.kind.namespaced {
		group.Go(supervisor.Protected(ctx, "views", func(ctx context.Context) (err error) {
			ours, err = r.namespaces.inMember(ctx, l, namespace)
			return err
		}))
	}
	group.Go(supervisor.Protected(ctx, "views", func(ctx context.Context) (err error) {
		list, err = get(l.clientOfKind(r.kind), r.kind.resource.Resource, namespace).SpecificallyVersionedParams(&o, scheme.ParameterCodec, corev1.SchemeGroupVersion).Do(ctx).Get()
		return err
	}))
	if err := group.Wait(); err != nil {
		return part{}, err
	}
	return r.partOf(list, ours, namespace)
}

// partOf returns the shown objects of a member's list.
func (r *REST) partOf(list runtime.Object, ours map[string]bool, namespace string) (part, error) {
	about, err := meta.ListAccessor(list)
	if err != nil || reflect.TypeOf(list) != reflect.TypeOf(r.kind.makeList()) {
		return part{}, fmt.Errorf("it sends %T", list)
	}
	p := part{version: boundText(about.GetResourceVersion(), maxVersion), next: about.GetContinue()}
	if len(p.next) > maxContinue {
		return part{}, fmt.Errorf("it continues a list with %d bytes: at most %d are taken", len(p.next), maxContinue)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return part{}, err
	}
	p.items, p.sent = make([]object, 0, len(items)), len(items)
	for _, item := range items {
		o, ok := item.(object)
		switch {
		case !ok || namespace != "" && o.GetNamespace() != namespace:
			p.dropped++
		case !r.kind.namespaced || ours[o.GetNamespace()]:
			p.items = append(p.items, o)
		}
	}
	return p, nil
}

// maxVersion is the maximum size in bytes of a member's resource version.
const maxVersion = 64

// boundText returns a member's text, or "" if it is too long.
func boundText(text string, most int) string {
	if len(text) > most {
		return ""
	}
	return text
}
