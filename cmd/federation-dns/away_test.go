package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestAwayAfterTwoLooksInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := []error{nil, errors.New("once"), nil, errors.New("twice"), errors.New("twice"), errors.New("thrice"), nil, nil}
		var told []bool
		ctx, end := context.WithCancel(t.Context())
		go watchAway(ctx, func(context.Context) error {
			if len(looks) == 0 {
				return nil
			}
			next := looks[0]
			looks = looks[1:]
			return next
		}, func(away bool) { told = append(told, away) })
		time.Sleep(20 * askEvery)
		end()
		synctest.Wait()
		if !slices.Equal(told, []bool{true, false}) {
			t.Errorf("told %v, want away once and back once", told)
		}
	})
}

// A federation that is well and lets this server read nothing more, as when its token has ended, is away, and its age grows.
func TestAFederationThatRefusesIsNotHeard(t *testing.T) {
	for name, refused := range map[string]bool{"reads": false, "may not read": true} {
		t.Run(name, func(t *testing.T) {
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Path == "/readyz":
				case refused:
					w.WriteHeader(http.StatusUnauthorized)
				default:
					_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"federation-info"}}`))
				}
			}))
			defer api.Close()
			kube, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL})
			if err != nil {
				t.Fatal(err)
			}
			heard := &lastHeard{}
			heard.nanos.Store(time.Now().Add(-time.Hour).UnixNano())
			if err := askReady(kube, heard)(t.Context()); (err != nil) != refused {
				t.Errorf("%v", err)
			}
			metrics := make(chan prometheus.Metric, 1)
			heard.Collect(metrics)
			var m dto.Metric
			if err := (<-metrics).Write(&m); err != nil {
				t.Fatal(err)
			}
			if age := m.GetGauge().GetValue(); age > 3000 != refused {
				t.Errorf("heard %v s ago", age)
			}
		})
	}
}
