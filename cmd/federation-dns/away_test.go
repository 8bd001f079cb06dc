package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
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
