package cloudflare

import (
	"context"
	"strconv"
	"strings"

	"github.com/cloudflare/cloudflare-go/v7/dns"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zones"
)

const (
	recordsPerPage = 5000
	// maxNames is how many names are asked for one by one; beyond that the whole zone is read.
	maxNames = 10
)

// zonesNamed returns whose the zones of the name are, by their IDs.
func (a *api) zonesNamed(ctx context.Context, name string) (map[string]string, error) {
	token, err := a.authorized()
	if err != nil {
		return nil, err
	}
	page, err := a.service.List(ctx, zones.ZoneListParams{}, token, option.WithQuery("name", strings.TrimSuffix(name, ".")))
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, z := range page.Result {
		found[z.ID] = "of " + z.Account.Name
	}
	return found, nil
}

// fetch returns the records of the names, if they are few, or all, by name.
func (a *api) fetch(ctx context.Context, id string, names []string) (map[string][]record, error) {
	token, err := a.authorized()
	if err != nil {
		return nil, err
	}
	records := map[string][]record{}
	if len(names) == 0 || len(names) > maxNames {
		return records, a.pages(ctx, id, records, token)
	}
	for _, name := range names {
		if err := a.pages(ctx, id, records, token, option.WithQuery("name.exact", strings.TrimSuffix(name, "."))); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// pages adds to records what the API lists. The SDK's own paging would not end with the context.
func (a *api) pages(ctx context.Context, id string, records map[string][]record, options ...option.RequestOption) error {
	var params dns.RecordListParams
	params.ZoneID.Value, params.ZoneID.Present = id, true
	for number := 1; ; number++ {
		page, err := a.records.List(ctx, params, append(options, option.WithQuery("per_page", strconv.Itoa(recordsPerPage)),
			option.WithQuery("page", strconv.Itoa(number)))...)
		if err != nil {
			return err
		}
		for _, r := range page.Result {
			name := strings.ToLower(r.Name) + "."
			records[name] = append(records[name], newRecord(name, r))
		}
		if int64(len(page.Result)) < max(page.ResultInfo.PerPage, 1) { // the server may give smaller pages than asked for
			return nil
		}
	}
}
