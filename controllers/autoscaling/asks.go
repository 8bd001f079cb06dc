package autoscaling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"federation/apiserver/apis/federation/v1beta1"
	"federation/controllers/autoscaling/plan"
	"federation/controllers/supervisor"
)

// Metrics of the types Pods, Object and External are asked of the members' own APIs.

const (
	// askTimeout is how long a member has to answer for all metrics of an autoscaler.
	askTimeout = 3 * time.Second
	// askedAtOnce is how many members are asked at the same time for an autoscaler.
	askedAtOnce = 32
	// maxAsked is the most metrics of an autoscaler for which members are asked.
	maxAsked = 20
	// maxAnswer bounds an answer of a member, in bytes. For each pod that may be in it there is maxOfPod more.
	maxAnswer, maxOfPod = 1 << 20, 1 << 10
)

// answered is a metric for which members were asked, with what is made of their answers.
type answered struct {
	plan.Ask
	pods  map[string]int64 // of a metric of the type Pods, by pod
	value int64            // of others
	// unseen are the clusters with replicas that do not say, and why.
	unseen []string
	err    error
}

// answer is what a cluster says of a metric.
type answer struct {
	said []plan.Said
	err  error
}

// ask asks clusters for the metrics of an autoscaler. The answers are in the order of the metrics, by cluster.
func (r *readings) ask(ctx context.Context, w plan.Workload, in []string) []map[string]answer {
	asks := plan.Asks(w.By)
	asks = asks[:min(len(asks), maxAsked)]
	all := make([]map[string]answer, len(asks))
	for i := range all {
		all[i] = map[string]answer{}
	}
	if len(asks) == 0 {
		return nil
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for _, cluster := range in {
		group.Go(supervisor.Protected(ctx, "autoscaling", func(ctx context.Context) error {
			answers := r.askCluster(ctx, cluster, w, asks)
			mu.Lock()
			defer mu.Unlock()
			for i := range asks {
				all[i][cluster] = answers[i]
			}
			return nil
		}))
	}
	_ = group.Wait() // who could not be asked has no answer
	return all
}

// askCluster asks one cluster for all metrics, if the namespace there is the federation's: others' metrics are not for its users.
func (r *readings) askCluster(ctx context.Context, cluster string, w plan.Workload, asks []plan.Ask) []answer {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answers := make([]answer, len(asks))
	client, err := r.Member(cluster)
	if err == nil {
		err = r.isOurs(ctx, client, w.Namespace)
	}
	for i, a := range asks {
		if err == nil {
			answers[i].said, answers[i].err = r.askFor(ctx, client, w, a)
		} else {
			answers[i].err = err
		}
	}
	return answers
}

var errNotOurs = errors.New("the namespace there is not the federation's")

// isOurs returns an error unless a namespace in a member is the federation's.
func (r *readings) isOurs(ctx context.Context, client rest.Interface, namespace string) error {
	body, err := get(ctx, client, maxAnswer, "/api/v1/namespaces/"+namespace, map[string]string{"resourceVersion": "0"})
	if err != nil {
		return err
	}
	is := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(body, is); err != nil {
		return err
	}
	if is.Name != namespace || !v1beta1.NamespaceOf(is, r.Federation) {
		return errNotOurs
	}
	return nil
}

// askFor asks a member for a metric.
func (r *readings) askFor(ctx context.Context, client rest.Interface, w plan.Workload, a plan.Ask) ([]plan.Said, error) {
	most := int64(maxAnswer)
	var body []byte
	var err error
	switch a.Type {
	case autoscalingv2.ExternalMetricSourceType:
		body, err = get(ctx, client, most, "/apis/external.metrics.k8s.io/v1beta1/namespaces/"+w.Namespace+"/"+a.Name, map[string]string{"labelSelector": a.Selector})
	case autoscalingv2.PodsMetricSourceType:
		most += maxOfPod * w.Most
		body, err = getCustom(ctx, client, most, w.Namespace+"/pods/*/"+a.Name, map[string]string{"labelSelector": w.Selector, "metricLabelSelector": a.Selector})
	case autoscalingv2.ObjectMetricSourceType:
		of := r.resourceOf(a.Object) + "/" + a.Object.Name
		if a.Object.Kind == "Namespace" && !strings.Contains(a.Object.APIVersion, "/") {
			of = "metrics" // its own, whatever name is given: as in Kubernetes, others' are not to be had
		}
		body, err = getCustom(ctx, client, most, w.Namespace+"/"+of+"/"+a.Name, map[string]string{"metricLabelSelector": a.Selector})
	}
	if err != nil {
		return nil, err
	}
	return plan.ParseSaid(body)
}

// resourceOf returns the resource of an object as custom.metrics.k8s.io has it: RESOURCE.GROUP.
func (r *readings) resourceOf(object autoscalingv2.CrossVersionObjectReference) string {
	kind := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind)
	if resource, err := r.Resolve(kind.GroupKind()); err == nil {
		return resource.GroupResource().String()
	}
	guess, _ := meta.UnsafeGuessKindToResource(kind)
	return guess.GroupResource().String()
}

// getCustom gets from custom.metrics.k8s.io, in the version that the member serves. What we read is the same in both.
func getCustom(ctx context.Context, client rest.Interface, most int64, path string, parameters map[string]string) ([]byte, error) {
	body, err := get(ctx, client, most, "/apis/custom.metrics.k8s.io/v1beta2/namespaces/"+path, parameters)
	if apierrors.IsNotFound(err) {
		return get(ctx, client, most, "/apis/custom.metrics.k8s.io/v1beta1/namespaces/"+path, parameters)
	}
	return body, err
}

// get gets a path of a member's API, of at most so many bytes.
func get(ctx context.Context, client rest.Interface, most int64, path string, parameters map[string]string) ([]byte, error) {
	request := client.Get().AbsPath(path).SetHeader("Accept", "application/json").MaxRetries(0).WarningHandler(rest.NoWarnings{})
	for name, value := range parameters {
		if value != "" {
			request.Param(name, value)
		}
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // what was read is all that counts
	body, err := io.ReadAll(io.LimitReader(stream, most+1))
	if err == nil && int64(len(body)) > most {
		return nil, fmt.Errorf("its answer has more than %d bytes", most)
	}
	return body, err
}

// answeredBy returns what is made of the answers of clusters to the metrics of an autoscaler.
func answeredBy(w plan.Workload, by *autoscalingv2.HorizontalPodAutoscaler, counted plan.Counted, replicas int32, in []string, said []map[string]answer) (all []answered) {
	combine, invalid := v1beta1.ParseCombinations(by.Annotations[v1beta1.MetricsAcrossClustersAnnotation], nil)
	for i, a := range plan.Asks(w.By)[:len(said)] {
		one, values := answered{Ask: a, err: invalid.ToAggregate()}, map[string]int64{}
		ofPods, reasons := map[string][]plan.Said{}, []string{}
		for _, cluster := range in {
			answer := said[i][cluster]
			value, ok := a.One(answer.said)
			if answer.err == nil && !ok && (a.Type != autoscalingv2.PodsMetricSourceType || w.Placed[cluster] > 0) {
				answer.err = fmt.Errorf("it has %d values", len(answer.said))
			}
			if answer.err != nil {
				reason := "cluster " + cluster + ": " + shortReason(answer.err)
				if reasons = append(reasons, reason); w.Placed[cluster] > 0 {
					one.unseen = append(one.unseen, reason)
				}
				continue
			}
			values[cluster], ofPods[cluster] = value, answer.said
		}
		switch {
		case one.err != nil:
		case len(values) == 0:
			one.err = fmt.Errorf("no cluster says what it is: %s", strings.Join(reasons[:min(len(reasons), maxNamed)], "; "))
		case a.Type == autoscalingv2.PodsMetricSourceType:
			one.pods = w.PodValues(a, counted, ofPods)
		default:
			one.value = w.Whole(a, combine[a.Name], values, replicas)
		}
		all = append(all, one)
	}
	return all
}

// shortReason returns why a member does not say what a metric is, in one line.
func shortReason(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %v", askTimeout)
	case apierrors.IsForbidden(err):
		return v1beta1.Printable(err.Error()) + " (join the cluster again to give the federation that right)"
	}
	return v1beta1.Printable(err.Error())
}
