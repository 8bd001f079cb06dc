package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"federation/apiserver/apis/federation/v1beta1"
)

func copiesNumbered(from, to int) map[types.UID]string {
	out := map[types.UID]string{}
	for i := from; i < to; i++ {
		out[types.UID(fmt.Sprint(i))] = fmt.Sprintf("ConfigMap shop/c%d", i)
	}
	return out
}

func TestVeryManyUnknownCopiesAreHeld(t *testing.T) {
	for _, test := range []struct {
		unknown, copies int
		held            bool
	}{{1, 1, false}, {10, 10, false}, {11, 11, true}, {11, 54, true}, {11, 55, false}, {40, 200, false}, {41, 200, true}} {
		var b Brake
		b.Judge(copiesNumbered(0, test.unknown), test.copies, time.Unix(0, 0))
		held, of, set, some := b.Held(3)
		if (held > 0) != test.held || held > 0 && (held != test.unknown || of != test.copies || set == "" || len(some) != 3) {
			t.Errorf("%d of %d: %d of %d are held, set %q, such as %v", test.unknown, test.copies, held, of, set, some)
		}
		if may, known := b.May("0"); !known || may == test.held {
			t.Errorf("%d of %d: may be deleted %t, known %t", test.unknown, test.copies, may, known)
		}
	}
}

// TestUnknownCopiesAddUp checks that a few at a time count like all at once, until some time has passed.
func TestUnknownCopiesAddUp(t *testing.T) {
	var b Brake
	now := time.Unix(0, 0)
	b.Judge(copiesNumbered(0, 8), 50, now)
	b.Judge(copiesNumbered(8, 16), 42, now.Add(time.Minute))
	if held, of, _, _ := b.Held(0); held != 8 || of != 50 {
		t.Errorf("%d of %d are held, after 8 went a minute before", held, of)
	}
	b.Judge(copiesNumbered(8, 16), 42, now.Add(11*time.Minute))
	if held, _, _, _ := b.Held(0); held != 0 {
		t.Errorf("%d are held, after 8 went long before", held)
	}
}

// TestWhatIsApprovedIsOneSet checks that an approval covers neither another set nor later copies, and that copies whose
// object is known again are not held.
func TestWhatIsApprovedIsOneSet(t *testing.T) {
	var b Brake
	now := time.Unix(0, 0)
	b.Judge(copiesNumbered(0, 20), 50, now)
	_, _, first, _ := b.Held(0)
	b.Judge(copiesNumbered(0, 21), 50, now)
	_, _, set, _ := b.Held(0)
	if set == first || b.Approve([]string{first}) {
		t.Error("what was approved were other copies")
	}
	if !b.Approve([]string{"another", set}) {
		t.Error("it is not approved")
	}
	if may, known := b.May("20"); !may || !known {
		t.Error("what was approved may not be deleted")
	}
	b.Judge(copiesNumbered(5, 21), 34, now) // some have gone
	if held, _, _, _ := b.Held(0); held != 0 {
		t.Errorf("%d that were approved are held again", held)
	}
	b.Judge(copiesNumbered(100, 120), 50, now)
	if held, _, _, _ := b.Held(0); held != 20 {
		t.Errorf("%d of 20 others are held", held)
	}
	b.Judge(copiesNumbered(100, 105), 50, now)
	if may, _ := b.May("100"); !may {
		t.Error("few are held")
	}
}

// TestTheClusterSaysWhatIsHeld checks that built-in kinds and each custom kind are counted apart, in one condition.
func TestTheClusterSaysWhatIsHeld(t *testing.T) {
	c, at := &v1beta1.Cluster{}, time.Unix(1000, 0)
	c.Name = "east-a"
	c.Status.Conditions = []v1beta1.ClusterCondition{{Type: v1beta1.ClusterReady}}
	if news := SayHeld(c, "widgets.example.com", &v1beta1.PendingDeletions{Resource: "widgets.example.com", Set: "w", Copies: 11, Of: 12, Examples: []string{"Widget shop/w"}}, at); !strings.Contains(news, "11 of 12 copies") {
		t.Errorf("news %q", news)
	}
	if news := SayHeld(c, "", &v1beta1.PendingDeletions{Set: "b", Copies: 20, Of: 30, Examples: []string{"ConfigMap shop/c"}}, at.Add(time.Minute)); news != "" {
		t.Errorf("it is news again: %q", news)
	}
	is := c.Condition(v1beta1.ClusterDeletionsPendingApproval)
	if is == nil || !strings.Contains(is.Message, "31 of 42 copies") || !strings.Contains(is.Message, "ConfigMap shop/c, Widget shop/w") ||
		!strings.Contains(is.Message, "approve-deletions east-a") || !is.LastTransitionTime.Time.Equal(at) || len(c.Status.DeletionsPendingApproval) != 2 {
		t.Errorf("condition %+v, %+v", is, c.Status.DeletionsPendingApproval)
	}
	SayHeld(c, "", nil, at)
	if is := c.Condition(v1beta1.ClusterDeletionsPendingApproval); is == nil || !strings.Contains(is.Message, "11 of 12") {
		t.Errorf("condition %+v", is)
	}
	SayHeld(c, "widgets.example.com", nil, at)
	if len(c.Status.DeletionsPendingApproval) != 0 || len(c.Status.Conditions) != 1 {
		t.Errorf("status %+v", c.Status)
	}
}
