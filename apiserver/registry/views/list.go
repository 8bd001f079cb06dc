package views

import (
	"cmp"
	"context"
	"fmt"
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
	restclient "k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/supervisor"
)

// part is one member's part of a list.
type part struct {
	items   []shown
	version string
	next    string // where its next page begins; "": that was all
	sent    int    // how many objects it sent
	dropped int    // how many of these it was not asked for, or are invalid
}

// shown is an object as it is shown: as such, or encoded.
type shown struct {
	namespace, name string
	object          object
	encoded         []byte
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
	page, namespace, f := at.nextPage(clusters, by, o.Limit), r.namespace(ctx), r.formatOf(ctx)
	if !r.isShown(ctx, namespace) {
		page.clusters = nil
	}
	answers := askAll(ctx, r.members, page.clusters, func(ctx context.Context, l *link) (part, error) {
		return r.listAt(ctx, l, namespace, by, metav1.ListOptions{Limit: page.each, Continue: at.Open[l.cluster]}, f)
	})
	return r.merge(ctx, answers, page, f)
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
func (r *REST) merge(ctx context.Context, answers []answer[part], page page, f format) (runtime.Object, error) {
	var all []shown
	if page.had == nil {
		page.had = map[string]int{}
	}
	vector, next := map[string]string{}, map[string]string{}
	for i, a := range answers {
		switch {
		case page.version != "" && r.versions.hasExpired(a.err, givenAt(page.version)):
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
		all = append(all, a.value.items...)
		if n := a.value.dropped; n > 0 {
			answers[i].err = fmt.Errorf("it sends %d objects that are none of what it was asked for", n)
		}
	}
	warnClient(ctx, answers)
	slices.SortFunc(all, func(a, b shown) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
	})
	if page.version == "" {
		page.version = r.versions.note(vector)
	}
	return r.listOf(all, metav1.ListMeta{ResourceVersion: page.version, Continue: page.next(next)}, f)
}

// listOf returns a list of objects, in a format if they are encoded.
func (r *REST) listOf(all []shown, about metav1.ListMeta, f format) (runtime.Object, error) {
	if f != nil {
		list := &encodedList{ListMeta: about, kind: r.kind, format: f, items: make([][]byte, len(all))}
		for i, o := range all {
			list.items[i] = o.encoded
		}
		return list, nil
	}
	list, items := r.kind.makeList(), make([]runtime.Object, len(all))
	for i, o := range all {
		items[i] = o.object
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, err
	}
	is, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	is.SetResourceVersion(about.ResourceVersion)
	is.SetContinue(about.Continue)
	return list, nil
}

// listAt asks one member. It reads the member's namespaces at the same time. With a format the objects of the part are encoded.
func (r *REST) listAt(ctx context.Context, l *link, namespace string, by selected, o metav1.ListOptions, f format) (part, error) {
	var any bool
	if o.LabelSelector, o.FieldSelector, any = by.selectorsFor(l.cluster); !any {
		return part{}, nil
	}
	if o.Limit == 0 {
		o.ResourceVersion = "0"
	}
	var answer restclient.Result
	wanted, copying := &wanted{kind: r.kind, namespace: namespace, cluster: l.cluster, owners: r.owners.lookup()}, &copying{ctx: ctx, format: f}
	group, of := errgroup.WithContext(ctx)
	group.Go(supervisor.Protected(of, "views", func(ctx context.Context) (err error) {
		if r.kind.namespaced {
			wanted.ours, err = r.namespaces.inMember(ctx, l, namespace)
		}
		if err == nil {
			copying.wanted.Store(wanted)
		}
		return err
	}))
	group.Go(supervisor.Protected(of, "views", func(ctx context.Context) error {
		request := get(l.clientOfKind(r.kind), r.kind.resource.Resource, namespace).SpecificallyVersionedParams(&o, scheme.ParameterCodec, corev1.SchemeGroupVersion)
		if f != nil {
			ctx = r.members.copied(ctx, copying)
			request.SetHeader("Accept", f.mediaType())
		}
		answer = request.Do(ctx)
		return answer.Error()
	}))
	if err := group.Wait(); err != nil {
		return part{}, err
	}
	return r.partOf(ctx, l, copying, answer)
}

// partOf returns what a member's answer has of what was wanted.
func (r *REST) partOf(ctx context.Context, l *link, copying *copying, answer restclient.Result) (part, error) {
	f, wanted := copying.format, copying.wanted.Load()
	if f != nil {
		var mediaType string
		body, err := answer.ContentType(&mediaType).Raw()
		if err != nil {
			return part{}, err
		}
		if mediaType == f.mediaType() {
			if p, ok := copying.finish(); ok {
				return p, nil
			}
		}
		if err := r.members.weigh(ctx, l, mediaType, body); err != nil {
			return part{}, err
		}
	}
	list, err := answer.Get()
	if err != nil {
		return part{}, err
	}
	p, err := wanted.decoded(ctx, list)
	if err != nil || f == nil {
		return p, err
	}
	return p, p.encode(f)
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
