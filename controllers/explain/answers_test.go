package explain

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"federation/apiserver/apis/federation/v1beta1"
)

// TestTheSameQuestionIsAskedOnce: by those who ask at the same time, and for a second after that.
func TestTheSameQuestionIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		var asked atomic.Int32
		ask := func(context.Context) (*v1beta1.PlacementReviewStatus, error) {
			asked.Add(1)
			time.Sleep(3 * time.Second)
			return &v1beta1.PlacementReviewStatus{Name: "web"}, nil
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if s, err := a.of(t.Context(), "web", "shop", ask); err != nil || s.Name != "web" {
					t.Errorf("%v %v", s, err)
				}
			})
		}
		all.Wait()
		if _, err := a.of(t.Context(), "web", "shop", ask); err != nil || asked.Load() != 1 {
			t.Errorf("asked %d times, %v", asked.Load(), err)
		}
		time.Sleep(keptFor + time.Millisecond)
		synctest.Wait()
		if _, err := a.of(t.Context(), "web", "shop", ask); err != nil || asked.Load() != 2 {
			t.Errorf("asked %d times, want again after %v; %v", asked.Load(), keptFor, err)
		}
	})
}

// TestOneNamespaceTakesNoOthersShare: one that asks for much is refused, and others are answered.
func TestOneNamespaceTakesNoOthersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		now := func(context.Context) (*v1beta1.PlacementReviewStatus, error) {
			return &v1beta1.PlacementReviewStatus{}, nil
		}
		refused := 0
		for i := range 100 {
			if _, err := a.of(t.Context(), fmt.Sprint(i), "greedy", now); apierrors.IsTooManyRequests(err) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused != 100-burst {
			t.Errorf("%d of 100 are refused, want all but %d", refused, burst)
		}
		if _, err := a.of(t.Context(), "web", "shop", now); err != nil {
			t.Errorf("another namespace: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := a.of(t.Context(), "later", "greedy", now); err != nil {
			t.Errorf("a second later: %v", err)
		}
		time.Sleep(time.Minute)
		if _ = a.share("new"); len(a.shares) != 1 {
			t.Errorf("%d shares are kept of namespaces that ask no more", len(a.shares)-1)
		}
	})
}

// TestAtMostSoManyAtOnce: whoever asks, members are asked for so many objects at once.
func TestAtMostSoManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		var most, refused atomic.Int32
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				_, err := a.of(t.Context(), fmt.Sprint(i), fmt.Sprint(i), func(context.Context) (*v1beta1.PlacementReviewStatus, error) {
					most.Add(1)
					time.Sleep(time.Second)
					panic("an object that nobody can explain")
				})
				if apierrors.IsTooManyRequests(err) {
					refused.Add(1)
				} else if err == nil {
					t.Error("a panic is no error")
				}
			})
		}
		all.Wait()
		if most.Load() != mostAtOnce || refused.Load() != 50-mostAtOnce {
			t.Errorf("%d are answered, %d refused", most.Load(), refused.Load())
		}
		if _, err := a.of(t.Context(), "web", "shop", func(context.Context) (*v1beta1.PlacementReviewStatus, error) { return nil, nil }); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// TestServiceAccountsOfANamespaceAreOneCaller: any number of them takes no more than one user.
func TestServiceAccountsOfANamespaceAreOneCaller(t *testing.T) {
	var a answers
	refused := 0
	for i := range 10 {
		if _, err := a.enter(fmt.Sprintf("system:serviceaccount:shop:robot-%d", i)); apierrors.IsTooManyRequests(err) {
			refused++
		}
	}
	leave, err := a.enter("jane")
	if refused != 10-mostOfOne || err != nil {
		t.Errorf("%d of 10 are refused, somebody else: %v", refused, err)
	}
	if leave(); a.taken != mostOfOne || len(a.turns) != 1 {
		t.Errorf("%d are taken, by %v", a.taken, a.turns)
	}
}
