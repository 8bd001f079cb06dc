package views

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// maxWatchers is the maximum of concurrent watches of one kind, and maxWatchersEach that of one client's, so that no client has them all.
const maxWatchers, maxWatchersEach = 100, 20

// seats counts concurrent watches of one kind by client.
type seats struct {
	resource string

	mu    sync.Mutex
	taken int
	by    map[string]int
}

// acquire counts one watch until free is called. The error says which limit is reached.
func (s *seats) acquire(client string) (free func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.by[client] >= maxWatchersEach:
		return nil, errors.NewTooManyRequestsError(fmt.Sprintf("%s has %d watches of %s, which is the most of one client", client, maxWatchersEach, s.resource))
	case s.taken >= maxWatchers:
		return nil, errors.NewTooManyRequestsError(fmt.Sprintf("there are %d watches of %s, which is the most", maxWatchers, s.resource))
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
