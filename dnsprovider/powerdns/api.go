package powerdns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"federation/dnsprovider"
)

// maxBody is how many bytes of an answer are read: some millions of records.
const maxBody = 1 << 29

// fewNames is the maximum of names read one by one, instead of the whole zone.
const fewNames = 16

// api speaks version 1 of PowerDNS' API. It is a batch.Service.
type api struct {
	Options
	client http.Client
}

// zone and rrset are as PowerDNS documents them; fields that nobody here needs are left out.
type zone struct {
	Kind   string  `json:"kind,omitempty"`
	RRsets []rrset `json:"rrsets"`
}

type rrset struct {
	Name       string   `json:"name"`
	Type       string   `json:"type"`
	TTL        uint32   `json:"ttl,omitempty"`
	ChangeType string   `json:"changetype,omitempty"`
	Records    []record `json:"records,omitempty"`
}

type record struct {
	Content  string `json:"content"`
	Disabled bool   `json:"disabled"`
}

// List reads the whole zone, or a few names. See batch.Service.
func (a *api) List(ctx context.Context, name string, names ...string) ([]dnsprovider.RRSet, error) {
	queries := []url.Values{{}}
	if 0 < len(names) && len(names) <= fewNames {
		queries = nil
		for _, n := range names {
			queries = append(queries, url.Values{"rrset_name": {n}})
		}
	}
	var found []rrset
	for _, query := range queries {
		var z zone
		if err := a.call(ctx, http.MethodGet, a.zone(name)+"?"+query.Encode(), nil, &z); err != nil {
			return nil, err
		}
		found = append(found, z.RRsets...)
	}
	return setsOf(name, found), nil
}

// setsOf leaves out the server's own records (SOA, NS at the apex, the addresses of those name servers), disabled ones,
// and what an RRSet cannot have because a name in it is no host name.
func setsOf(zone string, found []rrset) (sets []dnsprovider.RRSet) {
	nameServer := map[string]bool{}
	for _, rr := range found {
		for _, r := range rr.Records {
			if rr.Name == zone && rr.Type == "NS" {
				nameServer[r.Content] = true
			}
		}
	}
	for _, rr := range found {
		apex := rr.Name == zone && rr.Type == "NS" || rr.Type == "SOA"
		address := rr.Type == "A" || rr.Type == "AAAA"
		if apex || address && nameServer[rr.Name] {
			continue
		}
		var data []string
		for _, r := range rr.Records {
			if !r.Disabled {
				data = append(data, r.Content)
			}
		}
		if set, err := dnsprovider.New(rr.Name, dnsprovider.Type(rr.Type), rr.TTL, data...); err == nil {
			sets = append(sets, set)
		}
	}
	return sets
}

// Change returns after one PATCH. It then flushes the server's caches, once more than the server does by itself: an
// answer in the making while the records changed would stay in them. Then it notifies the secondaries, if any. See
// batch.Service.
func (a *api) Change(ctx context.Context, name string, changes dnsprovider.ChangeSet) error {
	var patch zone
	for _, step := range changes {
		patch.RRsets = append(patch.RRsets, patchOf(step)...)
	}
	err := a.call(ctx, http.MethodPatch, a.zone(name), patch, nil)
	var status *statusError
	if errors.As(err, &status) && (status.code == http.StatusUnprocessableEntity || status.code == http.StatusConflict) {
		return &dnsprovider.RefusedError{Err: err}
	}
	if err != nil {
		return err
	}
	for _, step := range changes {
		if err := a.call(ctx, http.MethodPut, "/cache/flush?"+url.Values{"domain": {step.Name}}.Encode(), nil, nil); err != nil {
			return fmt.Errorf("the records are changed, and the server's caches are not flushed: %w", err)
		}
	}
	var z zone
	if err := a.call(ctx, http.MethodGet, a.zone(name)+"?rrsets=false", nil, &z); err != nil {
		return err
	}
	if z.Kind != "Master" && z.Kind != "Primary" {
		return nil
	}
	if err := a.call(ctx, http.MethodPut, a.zone(name)+"/notify", nil, nil); err != nil {
		return fmt.Errorf("the records are changed, and the secondaries are not notified: %w", err)
	}
	return nil
}

// patchOf returns what goes, then what comes. A set that changes comes only: it replaces.
func patchOf(step dnsprovider.Step) (sets []rrset) {
	for _, old := range step.Old {
		if !slices.ContainsFunc(step.New, func(s dnsprovider.RRSet) bool { return s.Type == old.Type }) {
			sets = append(sets, rrset{Name: old.Name, Type: string(old.Type), ChangeType: "DELETE"})
		}
	}
	for _, set := range step.New {
		rr := rrset{Name: set.Name, Type: string(set.Type), TTL: set.TTL, ChangeType: "REPLACE"}
		for _, data := range set.Rdata {
			rr.Records = append(rr.Records, record{Content: data})
		}
		sets = append(sets, rr)
	}
	return sets
}

// zone returns the path of a zone.
func (a *api) zone(name string) string { return "/zones/" + url.PathEscape(name) }

// call makes a request. in, where there is something, is sent; out, where there is something, is
// filled from the answer.
func (a *api) call(ctx context.Context, method, path string, in, out any) error {
	key, err := a.Key()
	if err != nil {
		return fmt.Errorf("API key: %w", err)
	}
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, a.URL+"/api/v1/servers/"+url.PathEscape(a.Server)+path, &body)
	if err != nil {
		return err
	}
	request.Header.Set("X-API-Key", strings.TrimSpace(key))
	request.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // what was read is read
	return decodeAnswer(response, out)
}

// decodeAnswer decodes a successful response into out, and returns an error for any other. It reads to the end, so that the
// connection can be reused.
func decodeAnswer(response *http.Response, out any) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return fmt.Errorf("the server answers %s; then: %w", response.Status, err)
	}
	if response.StatusCode >= 300 {
		return &statusError{response.StatusCode, errorText(body)}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil
}

// errorText returns the text of an error response, of bounded length.
func errorText(body []byte) string {
	var object struct{ Error string }
	if json.Unmarshal(body, &object) == nil && object.Error != "" {
		body = []byte(object.Error)
	}
	return string(body[:min(len(body), 1000)])
}

// statusError is an answer that is not a good one.
type statusError struct {
	code int
	said string
}

// Error has the code, what the server says and what it means here.
func (e *statusError) Error() string {
	return fmt.Sprintf("the server answers %d %s: %q%s", e.code, http.StatusText(e.code), e.said, meanings[e.code])
}

var meanings = map[int]string{
	http.StatusUnauthorized: ": the API key is not the server's",
	http.StatusForbidden:    ": webserver-allow-from in its configuration does not have our address",
	http.StatusNotFound:     ": it has no such zone, or no such server name",
}
