package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
	"federation/dnsprovider/externaldns"
)

// Options say where the webhook provider is.
type Options struct {
	// URL is where it listens, http or https.
	URL string
	// MinTTL is the least TTL in seconds that it takes. Default: any.
	MinTTL uint32
	// Client makes the requests. Default: one that follows no redirects.
	Client *http.Client
}

// maxNames bounds one request.
const maxNames = 1000

// api is one webhook provider.
type api struct {
	base   *url.URL
	client *http.Client

	mu sync.Mutex
	// seen are the endpoints that were listed last before a change, by zone.
	seen map[string]map[externaldns.Key]externaldns.Endpoint
}

// changes are what POST /records takes.
type changes struct {
	Create    []externaldns.Endpoint `json:"create,omitempty"`
	UpdateOld []externaldns.Endpoint `json:"updateOld,omitempty"`
	UpdateNew []externaldns.Endpoint `json:"updateNew,omitempty"`
	Delete    []externaldns.Endpoint `json:"delete,omitempty"`
}

// New makes a provider. It fails when the URL is none.
func New(o Options) (dnsprovider.Provider, error) {
	base, err := url.Parse(o.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("URL of the webhook provider %q: must be http://HOST:PORT or https://HOST:PORT", o.URL)
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	a := &api{base: base, client: o.Client, seen: map[string]map[externaldns.Key]externaldns.Endpoint{}}
	return &batch.Provider{
		Name: "webhook " + base.Redacted(), Service: a, Most: maxNames, Size: func(dnsprovider.Step) int { return 1 },
		Blind: true, MinTTL: o.MinTTL, Types: externaldns.Types,
	}, nil
}

// List returns the plain sets of the zone. See batch.Service.
func (a *api) List(ctx context.Context, zone string, names ...string) ([]dnsprovider.RRSet, error) {
	var filter domainFilter
	if err := a.call(ctx, http.MethodGet, "/", nil, &filter); err != nil {
		return nil, err
	}
	if !filter.has(zone) {
		return nil, fmt.Errorf("it is for %s only", strings.Join(filter.Include, ", "))
	}
	var endpoints []externaldns.Endpoint
	if err := a.call(ctx, http.MethodGet, "/records", nil, &endpoints); err != nil {
		return nil, err
	}
	sets, byKey := externaldns.InZone(endpoints, zone)
	if len(names) > 0 {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.seen[zone] = byKey
	}
	return sets, nil
}

// Change sends one request. What goes is sent as it was listed last. See batch.Service.
func (a *api) Change(ctx context.Context, zone string, steps dnsprovider.ChangeSet) error {
	added, err := a.adjustEndpoints(ctx, zone, steps)
	if err != nil {
		return err
	}
	a.mu.Lock()
	seen := a.seen[zone]
	a.mu.Unlock()
	var body changes
	for _, step := range steps {
		for _, set := range step.New {
			if key := externaldns.KeyOf(set); hasType(step.Old, set.Type) {
				body.UpdateOld, body.UpdateNew = append(body.UpdateOld, seen[key]), append(body.UpdateNew, added[key])
			} else {
				body.Create = append(body.Create, added[key])
			}
		}
		for _, old := range step.Old {
			if !hasType(step.New, old.Type) {
				body.Delete = append(body.Delete, seen[externaldns.KeyOf(old)])
			}
		}
	}
	return a.call(ctx, http.MethodPost, "/records", body, nil)
}

func hasType(sets []dnsprovider.RRSet, t dnsprovider.Type) bool {
	return slices.ContainsFunc(sets, func(s dnsprovider.RRSet) bool { return s.Type == t })
}

// adjustEndpoints asks what the provider would make of the sets that come, and fails if that differs.
func (a *api) adjustEndpoints(ctx context.Context, zone string, steps dnsprovider.ChangeSet) (map[externaldns.Key]externaldns.Endpoint, error) {
	var sets []dnsprovider.RRSet
	var asked, adjusted []externaldns.Endpoint
	for _, step := range steps {
		for _, set := range step.New {
			sets, asked = append(sets, set), append(asked, externaldns.Of(set))
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	if err := a.call(ctx, http.MethodPost, "/adjustendpoints", asked, &adjusted); err != nil {
		return nil, err
	}
	got, byKey := externaldns.InZone(adjusted, zone)
	for _, set := range sets {
		if !slices.ContainsFunc(got, set.Equal) {
			return nil, dnsprovider.Refusef("record %s: it would make %+v of it; if that is the TTL, say which one is the least", set, byKey[externaldns.KeyOf(set)])
		}
	}
	return byKey, nil
}

var errTooLarge = errors.New("the answer is larger than 64 MiB")
