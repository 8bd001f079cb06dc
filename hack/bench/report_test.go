package main

import "testing"

func TestReplaceSection(t *testing.T) {
	one := replaceSection("# Head\n", "a", "first\n")
	two := replaceSection(one, "b", "second")
	three := replaceSection(two, "a", "third\n\n")
	want := "# Head\n\n<!-- a -->\nthird\n<!-- end of a -->\n\n<!-- b -->\nsecond\n<!-- end of b -->\n"
	if three != want {
		t.Errorf("got\n%s\nwant\n%s", three, want)
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct{ members, objects, rate int }{{3, 5000, 50}, {10, 1500, 15}, {20, 750, 7}, {200, 75, 1}} {
		b := &bench{}
		b.size(c.members)
		if b.objects != c.objects || b.rate != c.rate || b.steadyObjects != 20*c.rate {
			t.Errorf("%d members: got %d objects, %d a second, %d steady", c.members, b.objects, b.rate, b.steadyObjects)
		}
	}
}
