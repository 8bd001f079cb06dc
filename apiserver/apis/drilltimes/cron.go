package drilltimes

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"federation/apiserver/apis/federation/v1beta1"
)

// maxCron bounds a cron schedule in bytes, and searchDays how far ahead one is looked for.
const (
	maxCron    = 256
	searchDays = 366
	// maxTimes is how many times of a schedule are tried that are in no window: a week of one that comes each minute.
	maxTimes = 7*24*60 + 60
)

// ParseCron reads a cron schedule, in its time zone.
func ParseCron(schedule string, zone *time.Location) (*cron.SpecSchedule, error) {
	if len(schedule) > maxCron {
		return nil, fmt.Errorf("must have at most %d bytes", maxCron)
	}
	if strings.Contains(schedule, "TZ") { // the parser takes it, and panics where nothing follows
		return nil, fmt.Errorf("must not have a time zone: it is in timeZone")
	}
	if strings.HasPrefix(strings.TrimSpace(schedule), "@every") {
		return nil, fmt.Errorf("@every has no time of the day: must be in the form MINUTE HOUR DAY MONTH WEEKDAY, as 0 10 * * 2")
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return nil, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("must be in the form MINUTE HOUR DAY MONTH WEEKDAY, as 0 10 * * 2")
	}
	spec.Location = zone
	return spec, nil
}

// Times are those of a schedule, in its windows.
type Times struct {
	cron    *cron.SpecSchedule
	windows *Windows
	takes   time.Duration
}

// TimesOf returns the times of a schedule that is valid; of others the first error.
func TimesOf(s *v1beta1.FailoverDrillScheduleSpec) (*Times, error) {
	windows, err := Parse(&s.DrillWindows)
	if err != nil {
		return nil, err
	}
	c, err := ParseCron(s.Schedule, windows.zone)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", s.Schedule, err)
	}
	return &Times{c, windows, DurationOf(&s.Template.Spec)}, nil
}

// DurationOf returns how long a drill is under way that begins at once, until the clusters are brought back.
func DurationOf(s *v1beta1.FailoverDrillSpec) time.Duration {
	return time.Duration(s.Baseline()+s.Hold()) * time.Second
}

// After returns the first time after another at which a drill may be made; zero where there is none within a year.
func (t *Times) After(after time.Time) time.Time {
	last := after.AddDate(0, 0, searchDays)
	for range maxTimes {
		at := t.cron.Next(after)
		if at.IsZero() || at.After(last) {
			break
		}
		if after = at; !repeated(at.In(t.cron.Location)) && t.windows.Refuses(at, at.Add(t.takes)) == "" {
			return at.UTC()
		}
	}
	return time.Time{}
}

// repeated reports whether clocks have shown a time before: they were put back.
func repeated(at time.Time) bool {
	const look = 3 * time.Hour // no clock is put back further
	_, offset := at.Zone()
	_, before := at.Add(-look).Zone()
	if before <= offset {
		return false
	}
	earlier := at.Add(-time.Duration(before-offset) * time.Second)
	return earlier.Format(time.DateTime) == at.Format(time.DateTime)
}
