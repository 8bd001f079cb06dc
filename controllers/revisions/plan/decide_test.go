package plan

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func template(image string) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": map[string]any{"containers": []any{map[string]any{"image": image}}}}
}

// have is a revision of a template, as it was made.
func have(number int64, image string) Revision {
	hash := HashOf("Deployment", template(image))
	return Revision{Name: nameOf("web", hash), Template: hash, Number: number}
}

// show prints revisions by what they are of: NUMBER IMAGE replicas/STATUS.
func show(revisions []Revision, current string) string {
	images := map[string]string{}
	for _, image := range []string{"a", "b", "c", "d", "e"} {
		images[have(0, image).Name] = image
	}
	var lines []string
	for _, r := range revisions {
		mark := ""
		if r.Name == current {
			mark = "*"
		}
		lines = append(lines, fmt.Sprintf("%d %s%s %d/%d,%d,%d", r.Number, images[r.Name], mark, r.Replicas, r.Status.Replicas, r.Status.Ready, r.Status.Available))
	}
	return strings.Join(lines, "; ")
}

func TestDecide_Revisions(t *testing.T) {
	running := Pods{Wanted: 3, Total: 3, Updated: 3, Ready: 3, Available: 3}
	tests := []struct {
		name string
		w    Workload
		have []Revision
		want string
	}{
		{"the first", Workload{Template: template("a"), HistoryLimit: 10, Pods: Pods{Wanted: 3}}, nil, "1 a* 3/0,0,0"},
		{"it runs", Workload{Template: template("a"), HistoryLimit: 10, Pods: running}, []Revision{have(1, "a")}, "1 a* 3/3,3,3"},
		{"another template", Workload{Template: template("b"), HistoryLimit: 10, Pods: Pods{Wanted: 3, Total: 4, Updated: 2, Ready: 3, Available: 3}},
			[]Revision{have(1, "a")}, "2 b* 3/2,1,1; 1 a 0/2,2,2"},
		{"an earlier one comes back, with the next number", Workload{Template: template("a"), HistoryLimit: 10, Pods: running},
			[]Revision{have(1, "a"), have(2, "b"), have(3, "c")}, "4 a* 3/3,3,3; 3 c 0/0,0,0; 2 b 0/0,0,0"},
		{"the latest has it already", Workload{Template: template("a"), HistoryLimit: 10, Pods: running}, []Revision{have(2, "b"), have(4, "a")}, "4 a* 3/3,3,3; 2 b 0/0,0,0"},
		{"two have one number", Workload{Template: template("b"), HistoryLimit: 10, Pods: running}, []Revision{have(2, "a"), have(2, "b")}, "3 b* 3/3,3,3; 2 a 0/0,0,0"},
		{"only so many", Workload{Template: template("d"), HistoryLimit: 2, Pods: running}, []Revision{have(1, "a"), have(2, "b"), have(3, "c")}, "4 d* 3/3,3,3; 3 c 0/0,0,0; 2 b 0/0,0,0"},
		{"none but the newest", Workload{Template: template("b"), Pods: running}, []Revision{have(1, "a")}, "2 b* 3/3,3,3"},
		{"paused: a new template is none yet", Workload{Template: template("b"), Paused: true, Pods: Pods{Wanted: 3, Total: 3, Ready: 2, Available: 2}}, []Revision{have(1, "a")}, "1 a 3/3,2,2"},
		{"paused from the start", Workload{Template: template("a"), Paused: true, Pods: Pods{Wanted: 3}}, nil, "1 a* 3/0,0,0"},
		{"a number that nobody gave", Workload{Template: template("b"), HistoryLimit: 10, Pods: running}, []Revision{have(math.MaxInt64, "a"), have(-4, "c")}, "1 b* 3/3,3,3; 0 c 0/0,0,0; 0 a 0/0,0,0"},
		{"members say what cannot be", Workload{Template: template("a"), Pods: Pods{Wanted: 3, Total: 2, Updated: 7, Ready: 9, Available: -1}}, []Revision{have(1, "a")}, "1 a* 3/2,2,0"},
	}
	for _, test := range tests {
		test.w.Kind, test.w.Name = "Deployment", "web"
		if got := show(Decide(test.w, test.have)); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestARevisionThatWasChanged: somebody has given it another template. It stays the revision of the template that it was made of: no other could
// have its name.
func TestARevisionThatWasChanged(t *testing.T) {
	changed := have(3, "a")
	changed.Template = HashOf("Deployment", template("e"))
	if got := show(Decide(Workload{Kind: "Deployment", Name: "web", Template: template("a"), HistoryLimit: 10}, []Revision{changed})); got != "3 a* 0/0,0,0" {
		t.Error(got)
	}
}

// TestARevisionOfAnotherName: one that has the template, as from before a version in which templates have one more field, is found by that.
func TestARevisionOfAnotherName(t *testing.T) {
	before := have(3, "a")
	before.Name = "web-before"
	if got, current := Decide(Workload{Kind: "Deployment", Name: "web", Template: template("a"), HistoryLimit: 10}, []Revision{before}); len(got) != 1 || current != "web-before" {
		t.Errorf("%v, current %s", got, current)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	var all []Revision
	for n := range int64(500) {
		all = append(all, have(n, fmt.Sprint("image-", n)))
	}
	if got, _ := Decide(Workload{Kind: "Deployment", Name: "web", Template: template("a"), HistoryLimit: math.MaxInt32}, all); len(got) != MaxHistory+1 {
		t.Errorf("%d revisions are kept", len(got))
	}
}

func TestHashOf(t *testing.T) {
	one := template("a")
	one["metadata"].(map[string]any)["creationTimestamp"] = nil
	one["metadata"].(map[string]any)["labels"].(map[string]any)["pod-template-hash"] = "abc"
	if HashOf("Deployment", one) != HashOf("Deployment", template("a")) || HashOf("Deployment", one) == HashOf("Deployment", template("b")) {
		t.Error("nulls and the label of ReplicaSets count, or the template does not")
	}
	if one["metadata"].(map[string]any)["labels"].(map[string]any)["pod-template-hash"] != "abc" {
		t.Error("the template was changed")
	}
	if name := nameOf(strings.Repeat("a", 240)+".aaaaaaaaaaaa", HashOf("Deployment", one)); len(name) > 253 || strings.Contains(name, ".-") {
		t.Error(name)
	}
}

// TestAnnotations: the newest has those of the workload; old ones keep theirs, which an undo brings back, except where the pods go.
func TestAnnotations(t *testing.T) {
	old := have(1, "a")
	old.Annotations = map[string]string{"kubernetes.io/change-cause": "first", "federation.kubernetes.io/deployment-preferences": "then"}
	got, _ := Decide(Workload{Kind: "Deployment", Name: "web", Template: template("b"), HistoryLimit: 10, Annotations: map[string]string{
		"kubernetes.io/change-cause": "second", "federation.kubernetes.io/deployment-preferences": "now", "federation.kubernetes.io/placement": "{}",
		"deployment.kubernetes.io/revision": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}",
	}}, []Revision{old})
	want := "[map[federation.kubernetes.io/deployment-preferences:now kubernetes.io/change-cause:second] map[federation.kubernetes.io/deployment-preferences:now kubernetes.io/change-cause:first]]"
	if is := fmt.Sprint([]map[string]string{got[0].Annotations, got[1].Annotations}); is != want {
		t.Errorf("got  %s\nwant %s", is, want)
	}
}
