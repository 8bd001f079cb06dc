package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// TestARollAsAStory shows a whole rollover by the hour, with its messages.
func TestARollAsAStory(t *testing.T) {
	settings := DefaultSettings(time.Hour)
	s := Add(State{}, 11, began)
	above := &Parent{}
	var story []string
	said := ""
	for hour := 0; hour < 24*30; hour++ {
		d := Decide(s, settings, Facts{Now: began.Add(time.Duration(hour) * time.Hour), Parent: above, Roll: hour == 24*5})
		s = d.State
		if d.Make {
			s = Add(s, 22, began.Add(time.Duration(hour)*time.Hour))
			story = append(story, fmt.Sprintf("%d h: key 22 is made", hour))
		}
		for _, e := range d.Events {
			story = append(story, fmt.Sprintf("%d h: %s", hour, e.Reason))
		}
		if first, _, _ := strings.Cut(s.Waits, ":"); first != said {
			said = first
			story = append(story, fmt.Sprintf("%d h: waits: %s", hour, first))
		}
		if hour == 24*3 || hour == 24*10 { // a person submits the requested DS record
			above = &Parent{All: s.Submit, Any: s.Submit, TTL: time.Hour}
		}
	}
	want := []string{
		"0 h: waits: the parent zone may have the DS record of key 11 from 2026-11-23T12",
		"48 h: waits: the parent zone has no DS record, so resolvers check nothing; give it that of key 11",
		"73 h: ParentZoneDSPublished", "73 h: waits",
		"120 h: key 22 is made",
		"121 h: waits: key 22 signs from 2026-11-27T13",
		"145 h: KeyActive", "145 h: waits: the parent zone must have the DS record of key 22 and none of key 11",
		"241 h: ParentZoneDSPublished", "241 h: waits: key 11 goes at 2026-12-03T13",
		"289 h: KeyRemoved", "289 h: waits",
	}
	for i := range want {
		if i >= len(story) || !strings.HasPrefix(story[i], want[i]) {
			t.Fatalf("the story is\n%s\nwant at %d: %s", strings.Join(story, "\n"), i, want[i])
		}
	}
	if len(story) != len(want) || s.Active() != 22 || len(s.Keys) != 1 {
		t.Errorf("the story is\n%s\nand the keys are %+v", strings.Join(story, "\n"), s.Keys)
	}
}

// TestTheRetiredKeyStays checks each reason why it must not go.
func TestTheRetiredKeyStays(t *testing.T) {
	settings := DefaultSettings(time.Hour)
	both := State{Keys: []Key{{11, Retired, began}, {22, Active, began}}, Signed: began.Add(-time.Hour * 1000)}
	followed := both
	followed.ParentSince, followed.ParentSecure = began, true
	late := began.Add(24 * 30 * time.Hour)
	for name, c := range map[string]struct {
		state State
		facts Facts
		gone  bool
	}{
		"the parent zone was never asked":      {both, Facts{Now: late}, false},
		"it has the old key only":              {followed, Facts{Now: late, Parent: &Parent{All: []uint16{11}, Any: []uint16{11}}}, false},
		"it has both":                          {followed, Facts{Now: late, Parent: &Parent{All: []uint16{11, 22}, Any: []uint16{11, 22}}}, false},
		"one of its servers has the old one":   {followed, Facts{Now: late, Parent: &Parent{Any: []uint16{11, 22}}}, false},
		"it has somebody else's":               {followed, Facts{Now: late, Parent: &Parent{Others: true}}, false},
		"it has followed just now":             {both, Facts{Now: late, Parent: &Parent{All: []uint16{22}, Any: []uint16{22}}}, false},
		"its records live longer than most":    {followed, Facts{Now: late, Parent: &Parent{All: []uint16{22}, Any: []uint16{22}, TTL: 60 * 24 * time.Hour}}, false},
		"answers of the old key are in caches": {followed, Facts{Now: began.Add(47 * time.Hour)}, false},
		"nothing is in the way":                {followed, Facts{Now: late}, true},
		"there was never a DS record":          {State{Keys: both.Keys, Signed: both.Signed, ParentSince: began}, Facts{Now: late, Parent: &Parent{}}, true},
	} {
		d := Decide(c.state, settings, c.facts)
		if gone := len(d.Removed) == 1 && d.Removed[0] == 11 && len(d.State.Keys) == 1; gone != c.gone {
			t.Errorf("%s: %+v, want the old key gone: %t", name, d, c.gone)
		}
		if !c.gone && d.State.Waits == "" {
			t.Errorf("%s: nobody is told what is waited for", name)
		}
	}
}

func TestAKeyIsRolledWhenItIsOldOrSomebodyAsks(t *testing.T) {
	settings := DefaultSettings(time.Hour)
	one, two := Add(State{}, 11, began), Add(Add(State{}, 11, began), 22, began)
	for name, c := range map[string]struct {
		state    State
		lifetime time.Duration
		facts    Facts
		make     bool
	}{
		"nobody asks":          {one, 0, Facts{Now: began.Add(9999 * time.Hour)}, false},
		"somebody asks":        {one, 0, Facts{Now: began, Roll: true}, true},
		"it is old":            {one, 100 * time.Hour, Facts{Now: began.Add(100 * time.Hour)}, true},
		"it is not old":        {one, 100 * time.Hour, Facts{Now: began.Add(99 * time.Hour)}, false},
		"it is rolled already": {two, 100 * time.Hour, Facts{Now: began.Add(100 * time.Hour), Roll: true}, false},
		"there is none":        {State{}, 0, Facts{Now: began}, true},
	} {
		settings.Lifetime = c.lifetime
		if d := Decide(c.state, settings, c.facts); d.Make != c.make {
			t.Errorf("%s: %+v, want a new key: %t", name, d, c.make)
		}
	}
}

// TestKeysPutInByHand checks that manual changes of the Secret are taken up.
func TestKeysPutInByHand(t *testing.T) {
	s := Adopt(State{}, 11, nil, began)
	if s.Active() != 11 || s.Signed != began {
		t.Errorf("one key: %+v", s)
	}
	s = Adopt(s, 11, []uint16{22}, began.Add(time.Hour))
	if k := s.inPhase(Published); k == nil || k.Tag != 22 || k.Since != began.Add(time.Hour) {
		t.Errorf("a second one: %+v", s)
	}
	s.ParentSince = began
	s = Adopt(s, 22, []uint16{11}, began.Add(2*time.Hour))
	if k := s.inPhase(Retired); s.Active() != 22 || k == nil || k.Tag != 11 || k.Since != began.Add(2*time.Hour) || !s.ParentSince.IsZero() {
		t.Errorf("exchanged: %+v", s)
	}
	if again := Adopt(s, 22, []uint16{11}, began.Add(3*time.Hour)); fmt.Sprint(again) != fmt.Sprint(s) {
		t.Errorf("nothing is new, and %+v became %+v", s, again)
	}
	if s = Adopt(s, 22, nil, began.Add(4*time.Hour)); len(s.Keys) != 1 || s.Active() != 22 {
		t.Errorf("taken out: %+v", s)
	}
}
