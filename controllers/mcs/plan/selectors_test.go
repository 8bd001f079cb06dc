package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"federation/apiserver/apis/federation/v1beta1"
)

// nearest is the first example of KEP-5939: my cluster, my region, and, as whatever is not selected, any.
const nearest = `[{"propertySelector": {"matchExpressions": [{"key": "cluster.clusterset.k8s.io", "operator": "In", "values": ["@SameAsImporter@"]}]}},
  {"propertySelector": {"matchProperties": {"region.topology.k8s.io": "@SameAsImporter@"}}}]`

// placed is a source in a region.
func placed(cluster, region string, addresses ...string) Source {
	s := source(cluster, addresses...)
	s.Properties = map[string]string{"cluster.clusterset.k8s.io": cluster, "region.topology.k8s.io": region}
	s.Export.Export.Spec.ExportedAnnotations = map[string]string{v1beta1.ClusterSelectorsAnnotation: nearest}
	return s
}

func TestSelectedClustersAreUsedFirst(t *testing.T) {
	in := input(placed("a", "east", "10.1.0.1"), placed("b", "east", "10.2.0.1"), placed("c", "west", "10.3.0.1"))
	expect(t, &in, "its own serves", "!b 10.2.0.1:8080, !c 10.3.0.1:8080, a 10.1.0.1:8080")
	if got := in.Have.Import.Annotations[v1beta1.ClusterSelectorResultsAnnotation]; got != `[["a"],["a","b"]]` {
		t.Errorf("the import says that %s are selected", got)
	}
	in.Sources[0] = placed("a", "east", "!10.1.0.1")
	expect(t, &in, "its region does", "!a 10.1.0.1:8080, !c 10.3.0.1:8080, b 10.2.0.1:8080")
	in.Sources[1].Rank = Drained
	expect(t, &in, "what is near is drained", "!a 10.1.0.1:8080, !b 10.2.0.1:8080, c 10.3.0.1:8080")
	in.Sources[2].Rank = Lost
	expect(t, &in, "what is far is lost", "!a 10.1.0.1:8080, !c 10.3.0.1:8080, b 10.2.0.1:8080")
	delete(in.Sources[0].Properties, "region.topology.k8s.io")
	in.Sources[1].Rank, in.Sources[2].Rank = Serving, Serving
	expect(t, &in, "nobody knows where it is itself", "!a 10.1.0.1:8080, b 10.2.0.1:8080, c 10.3.0.1:8080")
	for i := range in.Sources {
		in.Sources[i].Export.Export.Spec.ExportedAnnotations = nil
	}
	expect(t, &in, "nothing is selected any more", "!a 10.1.0.1:8080, b 10.2.0.1:8080, c 10.3.0.1:8080")
	if got, found := in.Have.Import.Annotations[v1beta1.ClusterSelectorResultsAnnotation]; found {
		t.Errorf("the import still says that %s are selected", got)
	}
}

func TestSelectorsOfTheOldestExportDecide(t *testing.T) {
	old, young := placed("a", "east").Export, placed("b", "east").Export
	young.Export.CreationTimestamp.Time = epoch.Add(1e9)
	young.Export.Spec.ExportedAnnotations = map[string]string{"team": "web"}
	in, conditions := Merge([]Export{*young, *old})
	if got := conflictOf(conditions["a"]); got != "True AnnotationsConflict,ClusterSelectorsConflict" || in.Annotations[v1beta1.ClusterSelectorsAnnotation] != nearest {
		t.Errorf("%s; import %v", got, in.Annotations)
	}
}

func TestSelectorsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		nearest: "",
		`[]`:    "",
		`[{"propertySelector": {"matchExpressions": [{"key": "example.com/gpu", "operator": "DoesNotExist"}]}}]`: "",
		`{}`:                       "must be JSON as",
		`[{"clusterSelector": 1}]`: `unknown field "[0].clusterSelector"`,
		`[{}]`:                     "[0].propertySelector: 0 requirements, must be 1 to 32",
		`[{"propertySelector": {"matchProperties": {"a b": ""}}}]`:                                                            `[0].propertySelector.matchProperties: "a b" is no name of a property`,
		`[{"propertySelector": {"matchExpressions": [{"key": "", "operator": "Exists"}]}}]`:                                   `[0].propertySelector.matchExpressions[0].key: "" is no name`,
		`[{"propertySelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}]`:                     `[0].propertySelector.matchExpressions[0].operator: "Gt", must be In, NotIn, Exists or DoesNotExist`,
		`[{"propertySelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}]`:                                      `.values: 0 values`,
		`[{"propertySelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]}}]`:                 `.values: 1 values`,
		"[" + strings.Repeat(`{"propertySelector": {"matchProperties": {"a": "b"}}},`, 16) + strings.TrimPrefix(nearest, "["): ": 18 selectors, at most 16",
	} {
		e := exported("a", 0, "http:80")
		e.Export.Spec.ExportedAnnotations = map[string]string{v1beta1.ClusterSelectorsAnnotation: text}
		_, reason, message := validSelectors(&e)
		if (want == "") != (reason == "") || !strings.Contains(message, want) || want != "" && reason != "InvalidClusterSelector" {
			t.Errorf("%s: %s, %s; want %s", text, reason, message, want)
		}
	}
	headless := placed("a", "east").Export
	headless.Service.Spec.ClusterIP = "None"
	_, conditions := Merge([]Export{*headless})
	if c := meta.FindStatusCondition(conditions["a"], "Valid"); c.Status != metav1.ConditionFalse || c.Reason != string(mcsv1beta1.ServiceExportReasonInvalidServiceType) {
		t.Errorf("selectors of a headless Service: %+v", c)
	}
}

// Selectors of properties select as selectors of labels do, where the importing cluster has what is asked of it.
func TestSelectorsSelectAsThoseOfLabels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func(of []string) (picked []string) {
		for _, s := range of {
			if r.IntN(2) == 0 {
				picked = append(picked, s)
			}
		}
		return picked
	}
	keys, values := []string{"a", "b", "c"}, []string{"x", "y"}
	random := func() map[string]string {
		m := map[string]string{}
		for _, k := range some(keys) {
			m[k] = values[r.IntN(2)]
		}
		return m
	}
	selectedOnes := 0
	for range 20000 {
		p, l := propertySelector{MatchProperties: random()}, &metav1.LabelSelector{}
		importer, properties := random(), random()
		answerable := true
		resolve := func(key, value string) string {
			if value != sameAsImporter {
				return value
			}
			own, has := importer[key]
			answerable = answerable && has
			return own
		}
		for k := range p.MatchProperties {
			if r.IntN(3) == 0 {
				p.MatchProperties[k] = sameAsImporter
			}
		}
		l.MatchLabels = maps.Clone(p.MatchProperties)
		for k, v := range l.MatchLabels {
			l.MatchLabels[k] = resolve(k, v)
		}
		for _, k := range some(keys) {
			e := propertyRequirement{Key: k, Operator: []string{"In", "NotIn", "Exists", "DoesNotExist"}[r.IntN(4)]}
			var of []string
			if strings.HasSuffix(e.Operator, "In") {
				e.Values = append(some([]string{"x", sameAsImporter}), "z")
				for _, v := range e.Values {
					of = append(of, resolve(k, v))
				}
			}
			p.MatchExpressions = append(p.MatchExpressions, e)
			l.MatchExpressions = append(l.MatchExpressions, metav1.LabelSelectorRequirement{Key: k, Operator: metav1.LabelSelectorOperator(e.Operator), Values: of})
		}
		want := false
		if answerable {
			s, err := metav1.LabelSelectorAsSelector(l)
			if err != nil {
				t.Fatal(err)
			}
			want = s.Matches(labels.Set(properties))
		}
		if got := p.selects(properties, importer); got != want {
			t.Fatalf("%+v of %v for %v: %v, want %v", p, properties, importer, got, want)
		}
		if want {
			selectedOnes++
		}
	}
	if selectedOnes < 1000 {
		t.Errorf("only %d of 20,000 selected anything", selectedOnes)
	}
}

func TestResultsAreBounded(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("cluster-%04d", i))
	}
	if got := resultsText(slices.Repeat([][]string{many}, maxSelectors)); strings.Count(got, "cluster-") != maxSelectors*maxSources {
		t.Errorf("%d clusters are listed", strings.Count(got, "cluster-"))
	}
}

func FuzzSelectors(f *testing.F) {
	f.Add(nearest)
	f.Fuzz(func(_ *testing.T, text string) {
		selectors, err := selectorsOf(map[string]string{v1beta1.ClusterSelectorsAnnotation: text})
		for _, s := range selectors {
			if err == nil {
				s.PropertySelector.selects(map[string]string{"a": "b"}, nil)
			}
		}
	})
}

// BenchmarkDecide is one decision of a settled member, of ten clusters with a slice of 50 endpoints each.
//
//	go test ./controllers/mcs/plan -run - -bench Decide -benchmem
func BenchmarkDecide(b *testing.B) {
	for name, annotations := range map[string]map[string]string{"plain": nil, "selectors": {v1beta1.ClusterSelectorsAnnotation: nearest}} {
		var all []Source
		for c := range 10 {
			var addresses []string
			for i := range 50 {
				addresses = append(addresses, fmt.Sprintf("10.%d.0.%d", c, 1+i))
			}
			s := placed(string(rune('a'+c)), []string{"east", "west"}[c%2], addresses...)
			s.Export.Export.Spec.ExportedAnnotations = annotations
			all = append(all, s)
		}
		in := input(all...)
		settleIn(b, &in)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Decide(in)
			}
		})
	}
}
