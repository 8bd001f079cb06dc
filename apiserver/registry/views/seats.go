package views

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// maxWatchers is the maximum of concurrent watches of one kind, and maxWatchersEach that of one client's, so that no client has them all.
	maxWatchers, maxWatchersEach = 100, 20
	// maxStreams and maxStreamsEach are the same of logs, exec, attach and port-forward. Whoever follows a workload has a log for each pod.
	maxStreams, maxStreamsEach = 1000, 200
)

// seats counts what goes on at the same time, by client.
type seats struct {
	what       string // in the plural
	most, each int

	mu    sync.Mutex
	taken int
	by    map[string]int
}

// acquire counts one until free is called. The error says which limit is reached.
func (s *seats) acquire(client string) (free func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.by[client] >= s.each:
		return nil, errors.NewTooManyRequestsError(fmt.Sprintf("%s has %d %s, which is the most of one client", client, s.each, s.what))
	case s.taken >= s.most:
		return nil, errors.NewTooManyRequestsError(fmt.Sprintf("there are %d %s, which is the most", s.most, s.what))
	}
	if s.by == nil {
		s.by = map[string]int{}
	}
	s.taken++
	s.by[client]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken--
		if s.by[client]--; s.by[client] == 0 {
			delete(s.by, client)
		}
	}, nil
}

// acquireFor counts one of a request's client until the request ends.
func (s *seats) acquireFor(ctx context.Context) error {
	free, err := s.acquire(clientOf(ctx))
	if err == nil {
		context.AfterFunc(ctx, free)
	}
	return err
}

// clientOf names whose request it is: a user or, as who may make one service account may make a thousand, the namespace of one.
func clientOf(ctx context.Context) string {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return ""
	}
	if namespace, _, err := serviceaccount.SplitUsername(user.GetName()); err == nil {
		return serviceaccount.ServiceAccountUsernamePrefix + namespace
	}
	return user.GetName()
}
