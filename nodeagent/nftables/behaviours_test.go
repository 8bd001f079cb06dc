package nftables

import (
	"testing"

	"federation/nodeagent/nettest/behaviours"
)

func open(t testing.TB) behaviours.Writer {
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func TestNFTablesBehaviours(t *testing.T) { behaviours.Run(t, open) }
