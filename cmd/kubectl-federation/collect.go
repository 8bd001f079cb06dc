package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/apiserver/client"
	"federation/controllers/explain"
)

type collectCommand struct {
	target
	genericiooptions.IOStreams
	file string
}

func newCollect(streams genericiooptions.IOStreams) *cobra.Command {
	o := &collectCommand{IOStreams: streams}
	c := &cobra.Command{
		Use:   "collect",
		Short: "Collect in one file what somebody needs who looks for a fault",
		Long: `Collect in one file what somebody needs who looks for a fault: how the federation stands, its Clusters, policies,
readiness and drills, of each federated object its metadata and status, events, Leases, health and metrics.

What may be secret is not in it: Secrets and ConfigMaps are read without their data, specs of workloads and values that
policies set are left out, and of annotations that are not the federation's own there are the names only. Names, labels
and messages are in it: look through it before you pass it on.

What you may not read is left out and listed in errors.txt. Logs are not in the API; add them, for example by
journalctl -u federation --since "1 hour ago".`,
		Example: `  kubectl federation collect

  # Into a file of your own, or a pipe
  kubectl federation collect --file support.tar.gz
  kubectl federation collect --file - | tar tz`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), time.Now()) },
	}
	o.addFlags(c)
	c.Flags().StringVarP(&o.file, "file", "f", "", "`FILE` to write, - for standard output; without it federation-support-TIME.tar.gz here")
	return c
}

func (o *collectCommand) run(ctx context.Context, now time.Time) (err error) {
	f, err := o.connect()
	if err != nil {
		return err
	}
	name := cmp.Or(o.file, "federation-support-"+now.UTC().Format("20060102-150405")+".tar.gz")
	out := io.Writer(os.Stdout) // not the one that makes text printable
	if name != "-" {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		defer func() {
			if err = errors.Join(err, file.Close()); err != nil {
				_ = os.Remove(name) // half of it would mislead
				return
			}
			tell(o.ErrOut, "wrote %s: look through it before you pass it on\n", name)
		}()
		out = file
	}
	b := newBundle(out, now)
	for _, part := range supportParts(f) {
		tell(o.ErrOut, "%s\n", part.file)
		if err := b.add(ctx, part); err != nil {
			return err
		}
	}
	return b.close()
}

// supportPart is a file of a bundle.
type supportPart struct {
	file string
	read func(context.Context) ([]byte, error)
}

// supportParts are the files of a bundle, in their order.
func supportParts(f *client.Federation) []supportPart {
	parts := []supportPart{
		{"version.json", raw(f, "/version")},
		{"status.json", func(ctx context.Context) ([]byte, error) { return marshalled(explain.ReadStatus(ctx, f)) }},
		{"readyz.txt", raw(f, "/readyz?verbose")},
		{"livez.txt", raw(f, "/livez?verbose")},
		{"metrics.txt", raw(f, "/metrics")},
		{"events.json", objects(f, schema.GroupVersionResource{Version: "v1", Resource: "events"}, "", whole)},
		{"leases.json", objects(f, schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, v1beta1.FederationNamespace, whole)},
		{"components.json", func(ctx context.Context) ([]byte, error) { return marshalled(f.Components(ctx)) }},
	}
	for _, resource := range []string{"clusters", "placementpolicies", "dnsnamegrants", "failoverreadinesses", "failoverdrills", "failoverdrillschedules"} {
		parts = append(parts, supportPart{"federation/" + resource + ".json", objects(f, v1beta1.SchemeGroupVersion.WithResource(resource), "", withoutValues)})
	}
	for _, k := range v1beta1.FederatedKinds {
		read := objects(f, k.Resource, "", withoutSpec)
		if k.Resource.Group == "" && (k.Resource.Resource == "secrets" || k.Resource.Resource == "configmaps") {
			read = metadataOnly(f, k.Resource)
		}
		parts = append(parts, supportPart{"objects/" + k.Resource.GroupResource().String() + ".json", read})
	}
	return parts
}

func marshalled(v any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(v, "", "  ")
}

// raw reads a path of the API.
func raw(f *client.Federation, path string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		body, err := f.REST.Get().RequestURI(path).DoRaw(ctx)
		if apierrors.IsInternalError(err) && len(body) > 0 { // not ready: it says why
			return body, nil
		}
		return body, err
	}
}

// objects lists objects, of all namespaces if it is empty, as scrub leaves them.
func objects(f *client.Federation, r schema.GroupVersionResource, namespace string, scrub func(map[string]any)) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		items := []any{}
		err := client.ListPages(ctx, f.Dynamic.Resource(r).Namespace(namespace), metav1.ListOptions{}, func(u *unstructured.Unstructured) error {
			u.SetManagedFields(nil)
			u.SetAnnotations(ownAnnotations(u.GetAnnotations()))
			scrub(u.Object)
			items = append(items, u.Object)
			return nil
		})
		return marshalled(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, err)
	}
}

// metadataOnly lists the metadata of objects; their data is not even requested.
func metadataOnly(f *client.Federation, r schema.GroupVersionResource) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		items := []any{}
		err := f.ListMetadata(ctx, r, func(o metav1.Object) {
			items = append(items, map[string]any{"metadata": map[string]any{
				"namespace": o.GetNamespace(), "name": o.GetName(), "uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "creationTimestamp": o.GetCreationTimestamp(),
				"deletionTimestamp": o.GetDeletionTimestamp(), "finalizers": o.GetFinalizers(), "labels": o.GetLabels(), "annotations": ownAnnotations(o.GetAnnotations()),
			}})
		})
		return marshalled(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, err)
	}
}

const leftOut = "(left out)"

// ownAnnotations keeps the values of the federation's annotations: kubectl's have whole objects.
func ownAnnotations(all map[string]string) map[string]string {
	for key := range all {
		if domain, _, _ := strings.Cut(key, "/"); domain != "federation" && !strings.HasPrefix(domain, "federation.") {
			all[key] = leftOut
		}
	}
	return all
}

func whole(map[string]any) {}

// withoutSpec leaves metadata and status of an object.
func withoutSpec(object map[string]any) {
	for field := range object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			object[field] = leftOut
		}
	}
}

// withoutValues leaves out what a policy would set in objects.
func withoutValues(object map[string]any) {
	for field, is := range object {
		switch is := is.(type) {
		case map[string]any:
			withoutValues(is)
		case []any:
			for _, one := range is {
				if one, ok := one.(map[string]any); ok {
					withoutValues(one)
				}
			}
		}
		if field == "value" {
			object[field] = leftOut
		}
	}
}

// bundle is a compressed archive of files, all of the same time.
type bundle struct {
	zip    *gzip.Writer
	tar    *tar.Writer
	now    time.Time
	failed bytes.Buffer
}

func newBundle(out io.Writer, now time.Time) *bundle {
	zip := gzip.NewWriter(out)
	return &bundle{zip: zip, tar: tar.NewWriter(zip), now: now}
}

// add reads a file and writes it. What cannot be read is noted, and no error.
func (b *bundle) add(ctx context.Context, part supportPart) error {
	content, err := part.read(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if apierrors.IsNotFound(err) { // a kind that this federation does not serve
		return nil
	}
	if err != nil {
		fmt.Fprintf(&b.failed, "%s: %v\n", part.file, err)
		return nil
	}
	return b.write(part.file, content)
}

func (b *bundle) write(file string, content []byte) error {
	if err := b.tar.WriteHeader(&tar.Header{Name: "federation-support/" + file, Mode: 0o600, Size: int64(len(content)), ModTime: b.now}); err != nil {
		return err
	}
	_, err := b.tar.Write(content)
	return err
}

// close adds errors.txt if there were any, and ends the archive.
func (b *bundle) close() error {
	var err error
	if b.failed.Len() > 0 {
		err = b.write("errors.txt", b.failed.Bytes())
	}
	return errors.Join(err, b.tar.Close(), b.zip.Close())
}
