package plan

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"federation/apiserver/apis/federation/v1beta1"
)

// Ask is a metric of the type Pods, Object or External, for which members are asked.
type Ask struct {
	Type autoscalingv2.MetricSourceType
	Name string
	// Selector is that of the metric, as text.
	Selector string
	// Object is what a metric of the type Object describes.
	Object autoscalingv2.CrossVersionObjectReference
	target autoscalingv2.MetricTarget
}

// Asks returns the metrics of an autoscaler for which members are asked. Kubernetes' controller reports selectors that are invalid.
func Asks(by *autoscalingv2.HorizontalPodAutoscalerSpec) (asks []Ask) {
	for _, m := range by.Metrics {
		var one Ask
		var metric autoscalingv2.MetricIdentifier
		switch {
		case m.Type == autoscalingv2.PodsMetricSourceType && m.Pods != nil:
			metric, one.target = m.Pods.Metric, m.Pods.Target
		case m.Type == autoscalingv2.ObjectMetricSourceType && m.Object != nil:
			metric, one.target, one.Object = m.Object.Metric, m.Object.Target, m.Object.DescribedObject
		case m.Type == autoscalingv2.ExternalMetricSourceType && m.External != nil:
			metric, one.target = m.External.Metric, m.External.Target
		default:
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(metric.Selector)
		if err != nil {
			continue
		}
		one.Type, one.Name, one.Selector = m.Type, metric.Name, selector.String()
		asks = append(asks, one)
	}
	return asks
}

// String names what is asked for.
func (a Ask) String() string {
	return strings.Join([]string{string(a.Type), a.Name, a.Selector, a.Object.Kind, a.Object.Name}, "/")
}

// Is reports whether it asks for a metric: object is nil unless its type is Object.
func (a Ask) Is(kind autoscalingv2.MetricSourceType, name string, selector labels.Selector, object *autoscalingv2.CrossVersionObjectReference) bool {
	return a.Type == kind && a.Name == name && a.Selector == selector.String() && (object == nil || a.Object == *object)
}

// Said is one value that a member says a metric has, in thousandths.
type Said struct {
	// Kind and Name are those of the object that it describes.
	Kind, Name string
	// Milli is from 0 to 1 << 56: what is negative counts as nothing.
	Milli int64
}

// ParseSaid parses what a member answers: a list of custom.metrics.k8s.io or external.metrics.k8s.io, in any version of these.
func ParseSaid(body []byte) ([]Said, error) {
	var list struct {
		Kind  string `json:"kind"`
		Items []struct {
			Of    struct{ Kind, Name string } `json:"describedObject"`
			Value json.RawMessage             `json:"value"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("its answer is not a list of metrics: %w", err)
	}
	if !strings.HasSuffix(list.Kind, "MetricValueList") {
		return nil, fmt.Errorf("it answers with a %q, not with a list of metrics", v1beta1.Printable(list.Kind))
	}
	said := make([]Said, 0, len(list.Items))
	for _, item := range list.Items {
		milli, err := parseMilli(strings.Trim(string(item.Value), `"`))
		if err != nil {
			return nil, err
		}
		said = append(said, Said{Kind: item.Of.Kind, Name: item.Of.Name, Milli: milli})
	}
	return said, nil
}

// quantity is what is taken of a member as a quantity. Kubernetes' parser takes minutes for some with a large exponent.
var quantity = regexp.MustCompile(`^[+-]?[0-9]{0,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,2}|[numkMGTPE]|[KMGTPE]i)?$`)

// parseMilli parses a quantity, and returns thousandths from 0 to mostMilli.
func parseMilli(text string) (int64, error) {
	if !quantity.MatchString(text) {
		return 0, fmt.Errorf("it says %q: a value must be a quantity of up to 30 digits, with an exponent of up to 2", v1beta1.Printable(text))
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("it says %q: %w", text, err)
	}
	return milli(q), nil
}

// One returns what a member says of a metric that has one value in a cluster: of the type External the sum of what matches, of the type
// Object the only one. It returns false if there is none.
func (a Ask) One(said []Said) (milli int64, ok bool) {
	if len(said) == 0 || a.Type == autoscalingv2.ObjectMetricSourceType && len(said) > 1 {
		return 0, false
	}
	for _, one := range said {
		milli = min(milli+one.Milli, mostMilli)
	}
	return milli, true
}

// PodValues returns what a metric of the type Pods has for each of the pods that count, as far as members say it, by name. As with what
// pods use, that of others that serve is added to what one of these has.
func (w Workload) PodValues(a Ask, c Counted, said map[string][]Said) map[string]int64 {
	known := map[string]int64{}
	for cluster, values := range said {
		for _, one := range values {
			name := one.Name + "." + cluster
			if _, again := known[name]; one.Kind == "Pod" && !again {
				known[name] = one.Milli
			}
		}
	}
	most := mostOf(a.target, len(c.Pods)+len(c.others))
	out, more := map[string]int64{}, int64(0)
	for _, p := range c.Pods {
		if v, is := known[p.Name]; is {
			out[p.Name] = min(v, most)
		}
	}
	for _, name := range c.others {
		more += min(known[name], most)
	}
	to := slices.IndexFunc(c.Pods, func(p *corev1.Pod) bool { _, is := out[p.Name]; return is && isReady(p) })
	if to >= 0 {
		out[c.Pods[to].Name] += more
	}
	return out
}

// Whole returns the value of a metric of the type Object or External for all clusters together. said are the values of the clusters that
// answer, replicas is what the scale of the workload says that there are.
//
// Of a sum, the part of a cluster with replicas that does not answer is unknown. As of pods without metrics, it counts as just what its
// replicas should have before the workload is scaled down, and as nothing before it is scaled up.
func (w Workload) Whole(a Ask, by v1beta1.Combination, said map[string]int64, replicas int32) (value int64) {
	most := mostOf(a.target, len(said))
	for _, v := range said {
		if v = min(v, most); by == v1beta1.CombinationMax {
			value = max(value, v)
		} else {
			value += v
		}
	}
	placed, unknown := int64(0), int64(0)
	for cluster, n := range w.Placed {
		placed += n
		if _, answers := said[cluster]; !answers {
			unknown += n
		}
	}
	if keeps := targetFor(a.target, replicas); by != v1beta1.CombinationMax && value < keeps && unknown > 0 {
		return min(value+part(keeps, unknown, placed), keeps)
	}
	return value
}

// targetFor returns the value that keeps a workload at so many replicas, in thousandths.
func targetFor(target autoscalingv2.MetricTarget, replicas int32) int64 {
	switch {
	case target.Value != nil:
		return milli(*target.Value)
	case target.AverageValue != nil:
		return multiply(int64(max(0, replicas)), milli(*target.AverageValue))
	}
	return 0
}

// part returns n/of of a value. None is negative, and n is at most of.
func part(value, n, of int64) int64 {
	high, low := bits.Mul64(uint64(value), uint64(n))
	quotient, _ := bits.Div64(high, low, uint64(of))
	return int64(quotient)
}

// mostOf returns the most that one of several values of a metric counts. More than Kubernetes' algorithm can count with they never are
// together. Each may call for any maximum of replicas.
func mostOf(target autoscalingv2.MetricTarget, values int) int64 {
	one := int64(0)
	for _, t := range []*resource.Quantity{target.Value, target.AverageValue} {
		if t != nil {
			one = max(one, milli(*t))
		}
	}
	parts := int64(max(1, values))
	return min(multiply(mostReplicas/parts, one), mostMilli/parts)
}
