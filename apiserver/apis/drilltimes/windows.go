// Package drilltimes says when drills may be under way, and when schedules make them: windows of the week, and cron with time zones.
//
// The package is pure: values in, values out.
package drilltimes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a process may run where no time zones are installed

	"federation/apiserver/apis/federation/v1beta1"
)

// Days are those of windows, Sunday first as in time.Weekday.
var Days = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

// Window is a time of the week, in minutes of the day: from From, until before To.
type Window struct {
	Day      time.Weekday
	From, To int
}

var windowFormat = regexp.MustCompile(`^([A-Z]{3})-([0-2][0-9]):([0-5][0-9])-([0-2][0-9]):([0-5][0-9])$`)

// ParseWindow reads a window, as MON-09:00-12:00.
func ParseWindow(text string) (w Window, err error) {
	parts := windowFormat.FindStringSubmatch(text)
	if parts == nil {
		return w, fmt.Errorf("must be DAY-HH:MM-HH:MM, as MON-09:00-12:00")
	}
	day := slices.Index(Days, parts[1])
	if day < 0 {
		return w, fmt.Errorf("%s: must be one of %s", parts[1], strings.Join(Days, ", "))
	}
	minute := func(hour, minute string) int {
		two := func(s string) int { return int(s[0]-'0')*10 + int(s[1]-'0') }
		return 60*two(hour) + two(minute)
	}
	w = Window{time.Weekday(day), minute(parts[2], parts[3]), minute(parts[4], parts[5])}
	if w.To > 24*60 || w.From >= w.To {
		return w, fmt.Errorf("must end after it begins, at 24:00 at the latest")
	}
	return w, nil
}

// on returns when a window begins and ends on a day; false: it is of another day.
func (w Window) on(day time.Time) (from, to time.Time, ok bool) {
	y, m, d := day.Date()
	at := func(minutes int) time.Time { return time.Date(y, m, d, 0, minutes, 0, 0, day.Location()) }
	return at(w.From), at(w.To), day.Weekday() == w.Day
}

// ParseZone reads a time zone; UTC where there is none.
func ParseZone(name *string) (*time.Location, error) {
	switch {
	case name == nil:
		return time.UTC, nil
	case *name == "" || strings.EqualFold(*name, "Local"):
		return nil, fmt.Errorf("must be a name of the IANA time zone database, as Europe/Berlin")
	}
	return time.LoadLocation(*name)
}

// DateFormat is how days are written.
const DateFormat = "2006-01-02"

// Windows say when drills may be under way: always, where nothing is allowed, blocked or dated.
type Windows struct {
	zone             *time.Location
	allowed, blocked []Window
	dates            []string
}

// Parse reads windows that are valid; of others it returns the first error.
func Parse(of *v1beta1.DrillWindows) (w *Windows, err error) {
	if of == nil {
		return &Windows{zone: time.UTC}, nil
	}
	w = &Windows{dates: of.BlockedDates}
	if w.zone, err = ParseZone(of.TimeZone); err != nil {
		return nil, err
	}
	read := func(texts []string) (all []Window) {
		for _, text := range texts {
			one, bad := ParseWindow(text)
			if bad != nil && err == nil {
				err = fmt.Errorf("%q: %w", text, bad)
			}
			all = append(all, one)
		}
		return all
	}
	w.allowed, w.blocked = read(of.AllowedWindows), read(of.BlockedWindows)
	return w, err
}

// Refuses returns why a drill may not be under way from one time until before another; "": it may.
func (w *Windows) Refuses(from, to time.Time) string {
	from, to = from.In(w.zone), to.In(w.zone)
	run := fmt.Sprintf("it would be under way from %s to %s", from.Format("Mon 2006-01-02 15:04"), to.Format("15:04 MST"))
	for day := midnight(from); day.Before(to); day = midnight(day.AddDate(0, 0, 1)) {
		if date := day.Format(DateFormat); slices.Contains(w.dates, date) {
			return run + ": " + date + " is among the blocked dates"
		}
		for _, b := range w.blocked {
			if begins, ends, ok := b.on(day); ok && begins.Before(to) && from.Before(ends) {
				return run + ", in a blocked window"
			}
		}
	}
	for at := from; len(w.allowed) > 0 && !at.After(to); {
		ends := w.allowedUntil(at)
		if ends.IsZero() {
			return run + ", not in the allowed windows"
		}
		if !ends.Before(to) {
			break
		}
		at = ends
	}
	return ""
}

// allowedUntil returns when the allowed window that holds a time ends; zero where none does.
func (w *Windows) allowedUntil(at time.Time) (last time.Time) {
	for _, a := range w.allowed {
		if begins, ends, ok := a.on(midnight(at)); ok && !at.Before(begins) && at.Before(ends) && ends.After(last) {
			last = ends
		}
	}
	return last
}

// midnight returns when the day of a time begins: where clocks go forward at midnight, that is an hour later.
func midnight(t time.Time) time.Time {
	y, m, d := t.Date()
	begins := time.Date(y, m, d, 0, 0, 0, 0, t.Location())
	if begins.Day() != d {
		_, begins = begins.ZoneBounds()
	}
	return begins
}
