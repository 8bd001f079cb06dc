package main

import "testing"

func TestSizesOnlyGrow(t *testing.T) {
	for text, ok := range map[string]bool{"100x10,1000x10,1000x2": true, "1000x10,100x10": false} {
		if err := (&bench{}).setSizes(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
