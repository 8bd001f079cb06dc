package cluster

import (
	"net/http"
	"path"
	"strings"
	"testing"
)

// FuzzProxyPath checks that no path leads out of the member's API, and that none has dots left that a server behind us
// would follow.
func FuzzProxyPath(f *testing.F) {
	for _, sub := range []string{"", "/", "api/v1/pods/", "/../../x", "a/./b//c/..", "..", "%2e%2e/x", "/api/\x00", "//evil.example.com/x"} {
		f.Add("", sub)
		f.Add("/base", sub)
	}
	f.Fuzz(func(t *testing.T, base, sub string) {
		if strings.Contains(base, ".") {
			return // it is the Cluster's, which has none
		}
		joined := joinPath(base, sub)
		clean := path.Clean(joined)
		if root := path.Join("/", base); !strings.HasPrefix(joined, "/") || strings.HasPrefix(joined, "//") || strings.TrimSuffix(joined, "/") != strings.TrimSuffix(clean, "/") ||
			clean != root && !strings.HasPrefix(clean, strings.TrimSuffix(root, "/")+"/") {
			t.Errorf("%q below %q is %q", sub, base, joined)
		}
	})
}

// FuzzProxyHeaders checks that no form of a header that claims an identity reaches the member.
func FuzzProxyHeaders(f *testing.F) {
	for _, name := range []string{"Authorization", "impersonate-user", "Impersonate-Extra-Scopes", "X-Remote-User", "cookie", "Accept", "x-Remote-Extra-a%2fb"} {
		f.Add(name, "x")
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		req, err := http.NewRequest(http.MethodGet, "https://192.0.2.1/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Add(name, value) // as net/http reads it from a client
		for name := range withoutCredentials(req).Header {
			switch lower := strings.ToLower(name); {
			case lower == "authorization", lower == "cookie", strings.HasPrefix(lower, "impersonate-"), strings.HasPrefix(lower, "x-remote-"):
				t.Errorf("%q is passed on", name)
			}
		}
	})
}
