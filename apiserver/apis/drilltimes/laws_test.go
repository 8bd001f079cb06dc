package drilltimes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// in reports whether a minute, as clocks show it, is in one of the windows.
func in(windows []string, at time.Time) bool {
	return slices.ContainsFunc(windows, func(text string) bool {
		day, times, _ := strings.Cut(text, "-")
		from, to, _ := strings.Cut(times, "-")
		now := at.Format("15:04")
		return day == strings.ToUpper(at.Format("Mon")) && from <= now && now < to
	})
}

// oracleRefuses looks at each minute of a run, as the clocks of the zone show it.
func oracleRefuses(w *v1beta1.DrillWindows, zone *time.Location, from, to time.Time) bool {
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		wall := at.In(zone)
		if slices.Contains(w.BlockedDates, wall.Format("2006-01-02")) || in(w.BlockedWindows, wall) || len(w.AllowedWindows) > 0 && !in(w.AllowedWindows, wall) {
			return true
		}
	}
	return false
}

// someWindows returns windows of a few days, some of which touch or overlap.
func someWindows(r *rand.Rand, most int) (all []string) {
	for range r.IntN(most + 1) {
		from := r.IntN(6) * 4
		all = append(all, fmt.Sprintf("%s-%02d:%02d-%02d:%02d", Days[r.IntN(3)], from, r.IntN(2)*30, from+4, 0))
	}
	return all
}

// A drill may be under way if each minute of it may: none is blocked, and each is allowed, by whatever windows and over midnight.
func TestRefusesIsByEachMinute(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	refused := 0
	for range 3000 {
		name := []string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York", "Pacific/Kiritimati"}[r.IntN(5)]
		of := &v1beta1.DrillWindows{TimeZone: &name, AllowedWindows: someWindows(r, 14), BlockedWindows: someWindows(r, 2)}
		if r.IntN(3) == 0 {
			of.AllowedWindows = nil
		}
		if r.IntN(3) == 0 {
			of.BlockedDates = []string{fmt.Sprintf("2026-06-%02d", 7+r.IntN(3))}
		}
		w, err := Parse(of)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(2026, 6, 7, 0, r.IntN(3*24*4)*15, 0, 0, time.UTC) // no clock is changed in these days
		to := from.Add(time.Duration(1+r.IntN(20*60)) * time.Minute)
		if r.IntN(2) == 0 {
			to = from.Add(time.Duration(1+r.IntN(40)) * 15 * time.Minute) // ends with a window, often
		}
		got, want := w.Refuses(from, to), oracleRefuses(of, w.zone, from, to)
		if (got != "") != want {
			t.Fatalf("%s, %+v: from %s to %s: %q, want that it is refused: %t", name, of, from, to, got, want)
		}
		if want {
			refused++
		}
	}
	if refused < 500 || refused > 2700 {
		t.Errorf("%d of 3000 are refused: this says little", refused)
	}
}

// shownAt returns the minutes of some days at which clocks show a time, and not for the second time, and at which a drill may begin.
func shownAt(times *Times, hour, minute int, from time.Time, days int) (all []time.Time) {
	shown := map[string]bool{}
	for at := from.Add(-4 * time.Hour); at.Before(from.AddDate(0, 0, days)); at = at.Add(time.Minute) {
		wall := at.In(times.windows.zone)
		if wall.Hour() != hour || wall.Minute() != minute {
			continue
		}
		clock := wall.Format("2006-01-02 15:04")
		if at.After(from) && !shown[clock] && times.windows.Refuses(at, at.Add(times.takes)) == "" {
			all = append(all, at)
		}
		shown[clock] = true
	}
	return all
}

// The times of a schedule are those at which clocks show it, for the first time, and at which a drill may begin; no other comes between, also where
// clocks are put forward or back.
func TestTimesAreThoseThatClocksShow(t *testing.T) {
	changes := []struct{ zone, day string }{{"Europe/Berlin", "2026-03-29"}, {"Europe/Berlin", "2026-10-25"}, {"America/New_York", "2026-03-08"},
		{"America/New_York", "2026-11-01"},
		{"Asia/Beirut", "2026-03-29"}, {"Asia/Beirut", "2026-10-25"}, {"UTC", "2026-03-01"}}
	r := rand.New(rand.NewPCG(2, 2))
	found := 0
	for range 300 {
		change := changes[r.IntN(len(changes))]
		hour, minute := []int{23, 0, 1, 2, 3, 3}[r.IntN(6)], []int{0, 15, 30, 45, 45, 45}[r.IntN(6)]
		spec := &v1beta1.FailoverDrillScheduleSpec{Schedule: fmt.Sprintf("%d %d * * *", minute, hour), DrillWindows: v1beta1.DrillWindows{TimeZone: &change.zone}}
		if r.IntN(2) == 0 {
			spec.AllowedWindows = someWindows(r, 18)
		}
		spec.Template.Spec.BaselineSeconds, spec.Template.Spec.HoldSeconds = new(int32(60)), new(int32(19*60)) // a drill at a quarter to is beyond the hour
		times, err := TimesOf(spec)
		if err != nil {
			t.Fatal(err)
		}
		day := at(t, change.day+"T00:00:00Z")
		from := day.Add(-time.Duration(r.IntN(48*60)) * time.Minute)
		is := from
		for _, want := range shownAt(times, hour, minute, from, 9) {
			if is = times.After(is); !is.Equal(want) {
				t.Fatalf("%s, %s in %q from %s: %s, want %s", change.zone, spec.Schedule, spec.AllowedWindows, from, is, want)
			}
			found++
		}
	}
	if found < 500 {
		t.Errorf("%d times were found: this says little", found)
	}
}

// A window is read as what it says, to the minute; only those that end after they begin, and on their day, are read at all.
func TestWindowsAreReadAsTheyAreWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 5000 {
		day, from, to := r.IntN(7), r.IntN(25*60), r.IntN(25*60)
		text := fmt.Sprintf("%s-%02d:%02d-%02d:%02d", Days[day], from/60, from%60, to/60, to%60)
		w, err := ParseWindow(text)
		if good := from < to && to <= 24*60; good != (err == nil) || good && w != (Window{time.Weekday(day), from, to}) {
			t.Fatalf("%s is read as %+v, %v", text, w, err)
		}
		for _, wrong := range []string{strings.ToLower(text), text + " ", " " + text, strings.ReplaceAll(text, ":", "."), text[:len(text)-1], text + "0"} {
			if w, err := ParseWindow(wrong); err == nil {
				t.Fatalf("%q is read as %+v", wrong, w)
			}
		}
	}
}

// A drill is under way for as long as all must be well before, and as the clusters are held, whatever is left out; without windows it may be at any time.
func TestDurationOfDrills(t *testing.T) {
	for want, spec := range map[time.Duration]v1beta1.FailoverDrillSpec{
		11 * time.Minute: {}, 10*time.Minute + 5*time.Second: {BaselineSeconds: new(int32(5))}, 70 * time.Second: {HoldSeconds: new(int32(10))},
		5 * time.Hour: {BaselineSeconds: new(int32(3600)), HoldSeconds: new(int32(14400))},
	} {
		if got := DurationOf(&spec); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	always, err := Parse(nil)
	if begin := at(t, "2026-05-01T09:00:00Z"); err != nil || always.Refuses(begin, begin.AddDate(1, 0, 0)) != "" {
		t.Errorf("without windows: %v, %s", err, always.Refuses(begin, begin.AddDate(1, 0, 0)))
	}
	for of, want := range map[*v1beta1.FailoverDrillScheduleSpec]string{
		{Schedule: "x"}: `schedule "x": `,
		{Schedule: "@daily", DrillWindows: v1beta1.DrillWindows{TimeZone: new("Local")}}:                      "IANA",
		{Schedule: "@daily", DrillWindows: v1beta1.DrillWindows{BlockedWindows: []string{"MON-00:00-00:00"}}}: `"MON-00:00-00:00": must end`,
	} {
		if times, err := TimesOf(of); err == nil || times != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v, want %s", of, times, err, want)
		}
	}
}

// A day begins where clocks go forward at midnight, too: an hour later, and the day after follows.
func TestMidnightThatIsNotThere(t *testing.T) {
	for zone, day := range map[string]time.Time{"America/Havana": time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC), "America/Santiago": time.Date(2026, 9, 6, 12, 0, 0, 0, time.UTC)} {
		in, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		begins := midnight(day.In(in))
		if got, want := begins.Format("2006-01-02 15:04"), day.Format("2006-01-02")+" 01:00"; got != want {
			t.Errorf("%s: %s, want %s", zone, got, want)
		}
		if next := midnight(begins.AddDate(0, 0, 1)); next.Day() != day.Day()+1 || next.Hour() != 0 {
			t.Errorf("%s: the next day begins at %s", zone, next)
		}
	}
}
