package v1beta1

import (
	"fmt"
	"strings"
	"testing"
)

// TestOutOfSync_IsBounded whatever clusters say, and says the same when it is read again.
func TestOutOfSync_IsBounded(t *testing.T) {
	for name, message := range map[string]string{"short": "no; quota: 3", "long": strings.Repeat("a", 5000), "escaped": strings.Repeat("<\n", 5000)} {
		var all []ClusterOutOfSync
		for i := range 1000 {
			all = append(all, ClusterOutOfSync{Cluster: fmt.Sprintf("c-%03d", i), Reason: "Rejected", Message: message})
		}
		text := NewOutOfSync(all).String()
		if len(text) > maxOutOfSyncBytes+100 {
			t.Errorf("%s: %d bytes", name, len(text))
		}
		o := ParseOutOfSync(text)
		if o == nil || len(o.Clusters) == 0 || len(o.Clusters) > maxOutOfSync || len(o.Clusters)+o.More != 1000 {
			t.Fatalf("%s: %+v", name, o)
		}
		if got := o.In("c-000"); got == nil || got.Message != Printable(message) || o.In("c-999") != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if NewOutOfSync(nil).String() != "" || ParseOutOfSync("").In("a") != nil || ParseOutOfSync("{") != nil {
		t.Error("none is not none")
	}
}
