package cloudflare

import (
	"context"
	"fmt"
	"slices"
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

// find returns the ID of the zone of that name. It fails when there is none, or more than one.
func (a *api) find(ctx context.Context, zone string) (string, error) {
	a.mu.Lock()
	id, ok := a.known[zone]
	a.mu.Unlock()
	if ok {
		return id, nil
	}
	token, err := a.authorized()
	if err != nil {
		return "", err
	}
	page, err := a.zones.List(ctx, zones.ZoneListParams{}, token, option.WithQuery("name", strings.TrimSuffix(zone, ".")))
	if err != nil {
		return "", err
	}
	found := page.Result
	if a.zoneID != "" {
		found = slices.DeleteFunc(found, func(z zones.Zone) bool { return z.ID != a.zoneID })
	}
	if len(found) != 1 {
		return "", a.notOne(found)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[zone] = found[0].ID
	return found[0].ID, nil
}

// notOne says what is wrong with none or several zones.
func (a *api) notOne(found []zones.Zone) error {
	if len(found) == 0 && a.zoneID != "" {
		return fmt.Errorf("the token sees no zone of that name with the ID %q", a.zoneID)
	}
	if len(found) == 0 {
		return fmt.Errorf("the token sees no zone of that name")
	}
	var ids []string
	for _, z := range found {
		ids = append(ids, z.ID+" of "+z.Account.Name)
	}
	return fmt.Errorf("the token sees %d zones of that name (%s): say which one by its ID", len(found), strings.Join(ids, ", "))
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
