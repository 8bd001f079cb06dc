package main

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"federation/apiserver/apis/federation/v1beta1"
)

func weekly() *v1beta1.FailoverDrillSchedule {
	berlin := "Europe/Berlin"
	return &v1beta1.FailoverDrillSchedule{ObjectMeta: metav1.ObjectMeta{Name: "weekly", UID: "u"}, Spec: v1beta1.FailoverDrillScheduleSpec{
		Schedule: "0 10 * * 2", DrillWindows: v1beta1.DrillWindows{TimeZone: &berlin, BlockedDates: []string{"2026-12-24"}}, Rotate: v1beta1.RotateZones,
		Template: v1beta1.FailoverDrillTemplate{Spec: v1beta1.FailoverDrillSpec{Scope: v1beta1.FailoverDrillScope{Zones: []string{"east/a", "east/b"}}, Method: v1beta1.DrillShift, Reason: "r"}},
	}}
}

func TestProbesOf(t *testing.T) {
	probes, err := probesOf([]string{"https://web.example.com:8443/healthz", "tcp://db.example.com:5432", "DNS://web.example.com"})
	if err != nil || len(probes) != 3 || probes[0] != (v1beta1.DrillProbe{Name: "https-1", Host: "web.example.com", Type: v1beta1.ProbeHTTPS, Port: 8443, Path: "/healthz", Guard: true}) ||
		probes[1].Port != 5432 || probes[2].Type != v1beta1.ProbeDNS {
		t.Errorf("%+v, %v", probes, err)
	}
	for text, want := range map[string]string{"ftp://x": `--probe "ftp": must be one of http, https, tcp, dns`, "web": "must be TYPE://NAME", "http://x/?a=b": "must be TYPE://NAME", "tcp://x:70000": "port 70000"} {
		if _, err := probesOf([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestScheduleRow(t *testing.T) {
	now := time.Date(2026, 5, 5, 12, 0, 0, 0, time.UTC)
	s := weekly()
	s.Status = v1beta1.FailoverDrillScheduleStatus{NextScheduleTime: new(metav1.NewTime(now.AddDate(0, 0, 7).Add(-4 * time.Hour))), LastScheduleTime: new(metav1.NewTime(now.Add(-4 * time.Hour))),
		LastMissed: &v1beta1.MissedDrill{Time: metav1.NewTime(now.AddDate(0, 0, -7)), Reason: v1beta1.MissedTooLate}}
	if got, want := strings.Join(scheduleRow(s, now), "; "), "weekly; 0 10 * * 2 Europe/Berlin; east/a, east/b in turn; Shift; Tue 2026-05-12 10:00 CEST; 4h; -; 7d TooLate"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	s.Status.NextScheduleTime, s.Status.Conditions = nil, []metav1.Condition{{Type: v1beta1.DrillScheduled, Reason: v1beta1.ScheduleSuspended}}
	if got := scheduleRow(s, now)[4]; got != "Suspended" {
		t.Errorf("suspended: %s", got)
	}
}
