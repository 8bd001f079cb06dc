package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"federation/dnsprovider"
)

const (
	mediaType = "application/external.dns.webhook+json;version=1"
	// An answer may have maxAnswer bytes; of what it says when it fails we tell maxReason.
	maxAnswer, maxReason = 64 << 20, 1 << 10
)

// call makes one request, with a body of JSON unless that is nil, and reads the answer into out unless
// that is nil. It fails on every answer but 2xx, and when it should read one of another media type.
func (a *api) call(ctx context.Context, method, path string, body, out any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base.JoinPath(path).String(), bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Accept", mediaType)
	request.Header.Set("Content-Type", mediaType)
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	if response.StatusCode/100 != 2 {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, maxReason))
		err := fmt.Errorf("%s %s: %s: %q", method, path, response.Status, reason)
		if response.StatusCode == http.StatusBadRequest || response.StatusCode == http.StatusUnprocessableEntity {
			return &dnsprovider.RefusedError{Err: err}
		}
		return err
	}
	if out == nil {
		return nil
	}
	if got := response.Header.Get("Content-Type"); strings.ReplaceAll(got, " ", "") != mediaType {
		return fmt.Errorf("%s %s: media type %q: must be %q: is this a webhook provider of external-dns?", method, path, got, mediaType)
	}
	return decodeJSON(response.Body, out)
}

func decodeJSON(from io.Reader, out any) error {
	text, err := io.ReadAll(io.LimitReader(from, maxAnswer+1))
	if err != nil {
		return err
	}
	if len(text) > maxAnswer {
		return errTooLarge
	}
	return json.Unmarshal(text, out)
}

// domainFilter says which names a webhook provider is for. Filters by regular expression are its own
// business: what it does not take it refuses.
type domainFilter struct {
	Include []string `json:"include"`
	Exclude []string `json:"exclude"`
}

// has reports whether the zone is among those that the provider is for; all are without any.
func (f domainFilter) has(zone string) bool {
	under := func(domains []string) bool {
		for _, d := range domains {
			if domain, err := dnsprovider.CanonicalName(strings.TrimPrefix(d, ".")); err == nil && dnsprovider.InZone(zone, domain) {
				return true
			}
		}
		return false
	}
	return (len(f.Include) == 0 || under(f.Include)) && !under(f.Exclude)
}
