package azuredns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"

	"federation/dnsprovider"
)

// restoreTimeout bounds putting old sets back, which is done even when the context has ended.
const restoreTimeout = 10 * time.Second

// applyStep changes one name: sets that go first, then those that come or change. When one that comes
// after others have gone fails, those are put back.
func (a *api) applyStep(ctx context.Context, zone string, step dnsprovider.Step, tags map[id]string) error {
	var gone []dnsprovider.RRSet
	for _, old := range step.Old {
		if slices.ContainsFunc(step.New, func(s dnsprovider.RRSet) bool { return s.Type == old.Type }) {
			continue
		}
		if err := a.remove(ctx, zone, old, tags[id{old.Name, old.Type}]); err != nil {
			return a.restore(ctx, zone, gone, err)
		}
		gone = append(gone, old)
	}
	for _, set := range step.New {
		if err := a.put(ctx, zone, set, tags[id{set.Name, set.Type}]); err != nil {
			return a.restore(ctx, zone, gone, err)
		}
	}
	return nil
}

// put creates the set, or changes the one that has the tag.
func (a *api) put(ctx context.Context, zone string, set dnsprovider.RRSet, tag string) error {
	options := &armdns.RecordSetsClientCreateOrUpdateOptions{IfNoneMatch: new("*")}
	if tag != "" {
		options = &armdns.RecordSetsClientCreateOrUpdateOptions{IfMatch: &tag}
	}
	theirs, err := toAzure(set)
	if err != nil {
		return err
	}
	_, err = a.client.CreateOrUpdate(ctx, a.group, strings.TrimSuffix(zone, "."), relativeName(set.Name, zone), armdns.RecordType(set.Type), theirs, options)
	return a.explain(err)
}

// remove deletes the set that has the tag.
func (a *api) remove(ctx context.Context, zone string, set dnsprovider.RRSet, tag string) error {
	_, err := a.client.Delete(ctx, a.group, strings.TrimSuffix(zone, "."), relativeName(set.Name, zone), armdns.RecordType(set.Type),
		&armdns.RecordSetsClientDeleteOptions{IfMatch: &tag})
	return a.explain(err)
}

// restore puts sets back that went before err, which it returns.
func (a *api) restore(ctx context.Context, zone string, gone []dnsprovider.RRSet, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	for _, set := range gone {
		if again := a.put(ctx, zone, set, ""); again != nil {
			err = fmt.Errorf("%w; then %s %s could not be put back: %w", err, set.Name, set.Type, again)
		}
	}
	return err
}
