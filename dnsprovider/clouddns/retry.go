package clouddns

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/googleapi"
)

const maxAttempts = 8

// retry calls do until it succeeds, fails for good, or has been tried often enough.
func retry[T any](ctx context.Context, do func(...googleapi.CallOption) (T, error)) (result T, err error) {
	err = gax.Invoke(ctx, func(context.Context, gax.CallSettings) error {
		result, err = do()
		return err
	}, gax.WithRetry(func() gax.Retryer {
		return &retryer{Backoff: gax.Backoff{Initial: 200 * time.Millisecond, Max: 5 * time.Second, Multiplier: 2}}
	}))
	return result, err
}

// retryer retries throttled and premature requests.
type retryer struct {
	gax.Backoff
	tried int
}

// Retry reports whether to try again after err, and after how long. See gax.Retryer.
func (r *retryer) Retry(err error) (time.Duration, bool) {
	r.tried++
	var said *googleapi.Error
	if r.tried >= maxAttempts || !errors.As(err, &said) {
		return 0, false
	}
	tooMany := said.Code == http.StatusTooManyRequests || slices.ContainsFunc(said.Errors, func(e googleapi.ErrorItem) bool {
		return e.Reason == "rateLimitExceeded" || e.Reason == "userRateLimitExceeded"
	})
	return r.Pause(), tooMany || said.Code >= http.StatusInternalServerError
}
