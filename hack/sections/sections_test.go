package sections

import "testing"

func TestReplace(t *testing.T) {
	one := Replace("# Head\n", "a", "first\n")
	two := Replace(one, "b", "second")
	three := Replace(two, "a", "third\n\n")
	want := "# Head\n\n<!-- a -->\nthird\n<!-- end of a -->\n\n<!-- b -->\nsecond\n<!-- end of b -->\n"
	if three != want {
		t.Errorf("got\n%s\nwant\n%s", three, want)
	}
}
