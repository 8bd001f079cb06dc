package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// sightings are when changes of EndpointSlices were seen.
type sightings struct {
	mu sync.Mutex
	at map[string]time.Time // by the slice's name and first address
}

// watch notes what comes until ctx ends.
func watch(ctx context.Context, kube kubernetes.Interface) (*sightings, error) {
	slices := kube.DiscoveryV1().EndpointSlices(namespace)
	list, err := slices.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFunc: func(o metav1.ListOptions) (apiwatch.Interface, error) { return slices.Watch(ctx, o) },
	})
	if err != nil {
		return nil, err
	}
	s := &sightings{at: map[string]time.Time{}}
	go func() {
		for e := range w.ResultChan() {
			if slice, ok := e.Object.(*discoveryv1.EndpointSlice); ok && len(slice.Endpoints) == 1 {
				s.note(slice)
			}
		}
	}()
	return s, nil
}

func sighting(s *discoveryv1.EndpointSlice) string {
	return fmt.Sprint(s.Name, s.Endpoints[0].Addresses[0])
}

func (s *sightings) note(slice *discoveryv1.EndpointSlice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[sighting(slice)] = time.Now()
}

// expect forgets that a slice was as it is to become.
func (s *sightings) expect(slice *discoveryv1.EndpointSlice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, sighting(slice))
}

// of is when a slice was seen as it is now; zero: it was not yet.
func (s *sightings) of(slice *discoveryv1.EndpointSlice) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[sighting(slice)]
}
