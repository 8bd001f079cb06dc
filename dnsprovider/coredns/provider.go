package coredns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"federation/dnsprovider"
	"federation/dnsprovider/batch"
)

// Options say where the keys are, and of which zones.
type Options struct {
	// Connect makes a client of the etcd that CoreDNS reads. It is called until it succeeds: with a user's name and
	// password, no client can be made while etcd is away.
	Connect func() (clientv3.KV, error)
	// Prefix is "path" in CoreDNS' configuration. Default: /skydns.
	Prefix string
	// Zones are those that CoreDNS serves from there.
	Zones []string
}

const (
	// maxOps is how many operations, and how many conditions, a transaction has (etcd: --max-txn-ops).
	maxOps = 128
	// callTimeout bounds a call whose context has no earlier deadline: the client of etcd retries for ever.
	callTimeout = 60 * time.Second
)

// New makes a provider; it does not speak to etcd yet. It fails when a zone is no name of a zone.
func New(o Options) (*batch.Provider, error) {
	s := &store{connect: o.Connect, prefix: "/" + strings.Trim(o.Prefix, "/")}
	if s.prefix == "/" {
		s.prefix = "/skydns"
	}
	for _, zone := range o.Zones {
		name, err := dnsprovider.CanonicalName(zone)
		if err != nil {
			return nil, fmt.Errorf("zone: %w", err)
		}
		s.zones = append(s.zones, name)
	}
	return &batch.Provider{
		Name: "CoreDNS by etcd", Service: s, Most: maxOps, Size: maxOperations,
		Types: []dnsprovider.Type{dnsprovider.A, dnsprovider.AAAA, dnsprovider.CNAME, dnsprovider.TXT},
	}, nil
}

// maxOperations returns how many conditions a step needs at most: one for each old record, two for the name;
// the operations are fewer, or as many as its records.
func maxOperations(step dnsprovider.Step) int { return batch.Records(step) + 2 }

// store is a batch.Service.
type store struct {
	connect func() (clientv3.KV, error)
	prefix  string
	zones   []string

	mu        sync.Mutex
	connected clientv3.KV
}

// commit returns a transaction.
func (s *store) commit(ctx context.Context, conditions []clientv3.Cmp, operations []clientv3.Op) (*clientv3.TxnResponse, error) {
	kv, err := s.kv()
	if err != nil {
		return nil, err
	}
	return kv.Txn(ctx).If(conditions...).Then(operations...).Commit()
}

func (s *store) kv() (clientv3.KV, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connected != nil {
		return s.connected, nil
	}
	kv, err := s.connect()
	if err != nil {
		return nil, err
	}
	s.connected = kv
	return kv, nil
}

// List reads the zone. See batch.Service.
func (s *store) List(ctx context.Context, zone string, _ ...string) ([]dnsprovider.RRSet, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if !slices.Contains(s.zones, zone) {
		return nil, fmt.Errorf("it is not among the zones %v", s.zones)
	}
	at := s.path(zone)
	got, err := s.commit(ctx, nil, []clientv3.Op{clientv3.OpGet(at), clientv3.OpGet(at+"/", clientv3.WithPrefix())})
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, response := range got.Responses {
		entries = append(entries, s.entries(response.GetResponseRange().Kvs)...)
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return dnsprovider.InZone(e.name, "dns."+zone) })
	return setsOf(entries), nil
}

// Change returns one transaction. See batch.Service.
func (s *store) Change(ctx context.Context, _ string, changes dnsprovider.ChangeSet) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	current, revision, err := s.read(ctx, changes)
	if err != nil {
		return err
	}
	var conditions []clientv3.Cmp
	var operations []clientv3.Op
	for _, step := range changes {
		entries := current[step.Name]
		if _, err := step.Apply(setsOf(entries)); err != nil {
			return err
		}
		goes, comes, err := s.entryDifference(step, entries)
		if err != nil {
			return err
		}
		conditions = append(conditions, unchangedSince(s.path(step.Name), revision, goes)...)
		operations = append(operations, write(goes, comes)...)
	}
	done, err := s.commit(ctx, conditions, operations)
	if err == nil && !done.Succeeded {
		return &dnsprovider.RefusedError{Err: errors.New("somebody else writes to the same names: try again")}
	}
	return err
}

// read returns what is at the steps' names, by name, and as of which revision of etcd.
func (s *store) read(ctx context.Context, changes dnsprovider.ChangeSet) (map[string][]entry, int64, error) {
	var gets []clientv3.Op
	for _, step := range changes {
		at := s.path(step.Name)
		gets = append(gets, clientv3.OpGet(at), clientv3.OpGet(at+"/"+ours, clientv3.WithPrefix()))
	}
	got, err := s.commit(ctx, nil, gets)
	if err != nil {
		return nil, 0, err
	}
	current := map[string][]entry{}
	for _, response := range got.Responses {
		for _, e := range s.entries(response.GetResponseRange().Kvs) {
			current[e.name] = append(current[e.name], e)
		}
	}
	return current, got.Header.Revision, nil
}

// entryDifference returns the entries that go and what comes, by key. It fails when an entry goes in part:
// somebody has put two records into one.
func (s *store) entryDifference(step dnsprovider.Step, entries []entry) (goes []entry, comes map[string]string, err error) {
	for _, e := range entries {
		n := 0
		for _, r := range e.records {
			if slices.ContainsFunc(step.Old, func(set dnsprovider.RRSet) bool { return set.Type == r.t }) {
				n++
			}
		}
		if n != 0 && n != len(e.records) {
			return nil, nil, dnsprovider.Refusef("key %s: has records of several types: must be deleted or divided by who wrote it", e.key)
		}
		if n > 0 {
			goes = append(goes, e)
		}
	}
	comes = map[string]string{}
	for _, set := range step.New {
		for _, data := range set.Rdata {
			value, err := valueOf(set, data)
			if err != nil {
				return nil, nil, &dnsprovider.RefusedError{Err: err}
			}
			comes[s.key(set, data)] = value
		}
	}
	return goes, comes, nil
}

// unchangedSince returns the conditions that nothing has been added or changed at the name since the revision, and that
// nothing to delete is gone.
func unchangedSince(path string, revision int64, goes []entry) []clientv3.Cmp {
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(path), "<", revision+1),
		clientv3.Compare(clientv3.ModRevision(path+"/"+ours), "<", revision+1).WithPrefix(),
	}
	for _, e := range goes {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(e.key), "=", e.revision))
	}
	return conditions
}

// write returns the operations: etcd takes one for each key.
func write(goes []entry, comes map[string]string) (operations []clientv3.Op) {
	for _, e := range goes {
		if _, stays := comes[e.key]; !stays {
			operations = append(operations, clientv3.OpDelete(e.key))
		}
	}
	for key, value := range comes {
		operations = append(operations, clientv3.OpPut(key, value))
	}
	return operations
}
