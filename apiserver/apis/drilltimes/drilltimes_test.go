package drilltimes

import (
	"strings"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	is, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// Clocks that are put forward skip a time, and put back show one twice; each day has the schedule's time once at most, as the wall shows it.
func TestTimesWhereClocksChange(t *testing.T) {
	berlin, lordHowe := "Europe/Berlin", "Australia/Lord_Howe" // the second changes by half an hour
	for name, c := range map[string]struct {
		cron  string
		zone  *string
		after string
		want  []string
	}{
		"UTC":            {"0 10 * * 2", nil, "2026-05-01T00:00:00Z", []string{"2026-05-05T10:00:00Z", "2026-05-12T10:00:00Z"}},
		"summer":         {"0 10 * * *", &berlin, "2026-03-28T00:00:00Z", []string{"2026-03-28T09:00:00Z", "2026-03-29T08:00:00Z"}},
		"skipped":        {"30 2 * * *", &berlin, "2026-03-28T00:00:00Z", []string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}},
		"twice":          {"30 2 * * *", &berlin, "2026-10-24T00:00:00Z", []string{"2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"by half":        {"45 1 * * *", &lordHowe, "2026-04-03T20:00:00Z", []string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		"last of a day":  {"0 0 31 * *", nil, "2026-03-31T00:00:00Z", []string{"2026-05-31T00:00:00Z"}},
		"name of a time": {"@weekly", nil, "2026-05-01T00:00:00Z", []string{"2026-05-03T00:00:00Z"}},
	} {
		times, err := TimesOf(&v1beta1.FailoverDrillScheduleSpec{Schedule: c.cron, DrillWindows: v1beta1.DrillWindows{TimeZone: c.zone}})
		if err != nil {
			t.Fatal(err)
		}
		is := at(t, c.after)
		for _, want := range c.want {
			if is = times.After(is); is.Format(time.RFC3339) != want {
				t.Errorf("%s: %s, want %s", name, is.Format(time.RFC3339), want)
			}
		}
	}
}

func TestTimesAreInWindows(t *testing.T) {
	berlin := "Europe/Berlin"
	spec := v1beta1.FailoverDrillScheduleSpec{Schedule: "0 * * * *", DrillWindows: v1beta1.DrillWindows{
		TimeZone: &berlin, AllowedWindows: []string{"MON-10:00-12:00", "TUE-22:00-24:00", "WED-00:00-01:30"}, BlockedWindows: []string{"MON-10:59-11:00"}, BlockedDates: []string{"2026-05-04"}}}
	times, err := TimesOf(&spec)
	if err != nil {
		t.Fatal(err)
	}
	is, got := at(t, "2026-05-01T00:00:00Z"), []string(nil)
	for range 5 {
		is = times.After(is)
		got = append(got, is.In(times.windows.zone).Format("Mon 02 15:04"))
	}
	// a run takes 11 minutes: all but that at 10:00, of which the last minute is not blocked, end in their window; that at 24:00 goes on in the next
	if want := "Tue 05 22:00, Tue 05 23:00, Wed 06 00:00, Wed 06 01:00, Mon 11 10:00"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
	spec.AllowedWindows = []string{"MON-10:05-12:00"}
	spec.Schedule = "0 10 * * 1"
	if times, err = TimesOf(&spec); err != nil || !times.After(is).IsZero() {
		t.Errorf("%v, %v: want no time", times.After(is), err)
	}
}

func TestAgainst(t *testing.T) {
	w, err := Parse(&v1beta1.DrillWindows{AllowedWindows: []string{"FRI-09:00-12:00", "FRI-12:00-13:00"}, BlockedWindows: []string{"FRI-10:00-10:30"}, BlockedDates: []string{"2026-05-08"}})
	if err != nil {
		t.Fatal(err)
	}
	for run, want := range map[string]string{
		"2026-05-01T09:00:00Z 60m":  "",
		"2026-05-01T09:00:00Z 61m":  "blocked window",
		"2026-05-01T10:29:00Z 5m":   "blocked window",
		"2026-05-01T10:30:00Z 150m": "", // from one window into the next
		"2026-05-01T12:30:00Z 31m":  "not in the allowed windows",
		"2026-05-01T08:59:00Z 5m":   "not in the allowed windows",
		"2026-05-01T13:00:00Z 0m":   "not in the allowed windows",
		"2026-05-08T09:00:00Z 5m":   "2026-05-08 is among the blocked dates",
		"2026-05-07T23:58:00Z 5m":   "2026-05-08 is among the blocked dates",
	} {
		from, takes, _ := strings.Cut(run, " ")
		d, err := time.ParseDuration(takes)
		if err != nil {
			t.Fatal(err)
		}
		begin := at(t, from)
		if got := w.Refuses(begin, begin.Add(d)); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", run, got, want)
		}
	}
}

func TestWhatIsNoTime(t *testing.T) {
	for text, want := range map[string]string{
		"": "DAY-HH:MM", "MON-9:00-12:00": "DAY-HH:MM", "DAY-09:00-12:00": "one of SUN, MON", "MON-12:00-12:00": "end after", "MON-12:00-24:30": "24:00", "MON-22:00-02:00": "end after",
	} {
		if _, err := ParseWindow(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("window %q: %v, want %q", text, err, want)
		}
	}
	if _, err := Parse(&v1beta1.DrillWindows{AllowedWindows: []string{"first", "second"}, BlockedWindows: []string{"third"}}); err == nil ||
		!strings.Contains(err.Error(), `"first"`) {
		t.Errorf("of three windows that are none: %v, want what is wrong with the first", err)
	}
	for text, want := range map[string]string{
		"TZ=0": "time zone", "CRON_TZ=UTC 0 0 * * *": "time zone", "@every 1h": "@every", "* * *": "5 fields", "99 0 * * *": "above maximum", strings.Repeat("1,", 200) + "1 * * * *": "at most 256",
	} {
		if _, err := ParseCron(text, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("schedule %q: %v, want %q", text, err, want)
		}
	}
	for _, zone := range []string{"", "Local", "local", "Nowhere/City", "../../etc/passwd"} {
		if _, err := ParseZone(&zone); err == nil {
			t.Errorf("time zone %q is taken", zone)
		}
	}
}

// Whatever somebody writes is refused or understood.
func FuzzParseCron(f *testing.F) {
	for _, text := range []string{"0 10 * * 2", "TZ=", "*/5 1-2,3 L * MON", "@daily", "? ? ? ? ?"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCron(text, time.UTC); err == nil {
			c.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		}
	})
}
