package views

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrest "k8s.io/apiserver/pkg/registry/generic/rest"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"

	"federation/apiserver/apis/federation/v1beta1"
)

// LogREST serves the logs of pods, read in the member by the federation's account.
type LogREST struct {
	pods  *REST
	seats *seats
}

var (
	_ rest.GetterWithOptions = &LogREST{}
	_ rest.StorageMetadata   = &LogREST{}
)

// New returns an empty pod.
func (*LogREST) New() runtime.Object { return &corev1.Pod{} }

// Destroy does nothing: there is nothing to free.
func (*LogREST) Destroy() {}

// ProducesMIMETypes returns text.
func (*LogREST) ProducesMIMETypes(string) []string { return []string{"text/plain"} }

// ProducesObject returns the same in Go.
func (*LogREST) ProducesObject(string) any { return "" }

// NewGetOptions returns the options of a log.
func (*LogREST) NewGetOptions() (options runtime.Object, subpath bool, key string) {
	return &core.PodLogOptions{}, false, ""
}

// Get returns the log of a pod as a stream.
func (r *LogREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	pod, l, err := r.pods.locate(ctx, name)
	if err != nil {
		return nil, err
	}
	query, err := legacyscheme.ParameterCodec.EncodeParameters(options, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, errors.NewBadRequest(err.Error())
	}
	location, err := url.Parse(l.config.Host)
	if err != nil {
		return nil, err
	}
	if err := r.seats.acquireFor(ctx); err != nil {
		return nil, err
	}
	location.Path, location.RawQuery = pod.subresourcePath("log"), query.Encode()
	return &genericrest.LocationStreamer{
		Location: location, ContentType: "text/plain", Flush: options.(*core.PodLogOptions).Follow,
		Transport: asStream{r.pods.members, l}, RedirectChecker: genericrest.PreventRedirects,
		ResponseChecker: &memberStatus{pod.cluster.Name, name},
	}, nil
}

// locate finds an object, and how its member is reached.
func (r *REST) locate(ctx context.Context, name string) (found, *link, error) {
	o, err := r.find(ctx, name)
	if err != nil {
		return o, nil, err
	}
	l, err := r.members.link(ctx, o.cluster)
	if err != nil {
		err = errors.NewServiceUnavailable(fmt.Sprintf("cluster %s: %s", o.cluster.Name, shortReason(err)))
	}
	return o, l, err
}

// subresourcePath returns the path of a pod's subresource in its member.
func (f found) subresourcePath(subresource string) string {
	return "/api/v1/namespaces/" + f.namespace + "/pods/" + f.nameInside + "/" + subresource
}

// asStream sends requests whose responses have no end, and begin when there is something to send.
type asStream struct {
	members *Members
	link    *link
}

// RoundTrip implements http.RoundTripper.
func (s asStream) RoundTrip(r *http.Request) (*http.Response, error) {
	return s.link.client.Transport.RoundTrip(r.WithContext(s.members.allowWaiting(r.Context())))
}

// memberStatus turns a member's refusal into an error.
type memberStatus struct{ cluster, name string }

// maxStatus is the maximum of bytes read of a refusal.
const maxStatus = 16 << 10

// Check implements genericrest.HttpResponseChecker.
func (c *memberStatus) Check(response *http.Response) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	if err != nil {
		return errors.NewServiceUnavailable(fmt.Sprintf("cluster %s: %s", c.cluster, shortReason(err)))
	}
	text := string(body)
	var said metav1.Status
	if json.Unmarshal(body, &said) == nil && said.Message != "" {
		text = said.Message
	}
	if response.StatusCode == http.StatusForbidden {
		text += " (join the cluster with --pod-logs to let the federation read logs)"
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: int32(response.StatusCode), Reason: metav1.StatusReasonUnknown, Message: "cluster " + c.cluster + ": " + v1beta1.Printable(text)}
	switch response.StatusCode {
	case http.StatusForbidden:
		status.Reason = metav1.StatusReasonForbidden
	case http.StatusNotFound:
		status.Reason = metav1.StatusReasonNotFound
	case http.StatusBadRequest:
		status.Reason = metav1.StatusReasonBadRequest
	default:
		status.Code, status.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	}
	return &errors.StatusError{ErrStatus: status}
}
