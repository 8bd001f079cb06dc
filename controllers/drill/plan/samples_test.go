package plan

import (
	"reflect"
	"testing"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

// The samples of an isolation show what its marks say: addresses leave DNS, replicas leave the scope, what is there cannot be seen
// meanwhile, and all of it comes back. No two are closer than a second.
func TestSamplesShowTheCourse(t *testing.T) {
	m := newMade(t, v1beta1.DrillIsolation)
	m.ends(v1beta1.DrillSucceeded, v1beta1.DrillCompleted)
	r := m.drill.Status.Report
	at := func(s v1beta1.DrillSample) time.Time {
		return r.Marks.Injected.Add(time.Duration(s.AfterMilliseconds) * time.Millisecond)
	}
	var outOfDNS, placed time.Time
	least := int64(30)
	for i, s := range r.Samples {
		if i > 0 && at(s).Sub(at(r.Samples[i-1])) < time.Second {
			t.Errorf("samples %d and %d are less than a second apart", i-1, i)
		}
		if s.InDNS == 0 && outOfDNS.IsZero() {
			outOfDNS = at(s)
		}
		if s.InScope == 0 && placed.IsZero() {
			placed = at(s)
		}
		least = min(least, s.Ready)
	}
	if first := r.Samples[0]; first.AfterMilliseconds != 0 || first.InScope != 10 || first.InDNS != 1 {
		t.Errorf("it begins with %+v", first)
	}
	if last := r.Samples[len(r.Samples)-1]; last.Ready != 30 || last.InScope != 10 || last.InDNS != 1 || last.Failed != 0 {
		t.Errorf("it ends with %+v", last)
	}
	if d := outOfDNS.Sub(r.Marks.OutOfDNS.Time); d.Abs() > time.Second {
		t.Errorf("the samples have it out of DNS %s after the mark", d)
	}
	if d := placed.Sub(r.Marks.Placed.Time); d.Abs() > 2*time.Second {
		t.Errorf("the samples have it placed elsewhere %s after the mark", d)
	}
	if least != 20 {
		t.Errorf("the samples have %d ready at least, want the 20 that can be seen", least)
	}
}

// Whatever happens in four hours, the samples stay few and in order.
func TestSamplesAreFew(t *testing.T) {
	m := newMade(t, v1beta1.DrillShift)
	m.drill.Spec.HoldSeconds, m.drill.Spec.Guardrails.MinReadyPercent, m.drill.Spec.Objectives = new(int32(14400)), new(int32(0)), v1beta1.FailoverDrillObjectives{}
	for n := int64(0); m.drill.Status.Phase != v1beta1.DrillFinished; n++ {
		if m.ready = 30; m.drill.Status.Phase == v1beta1.DrillHolding {
			m.ready -= n % 2
		}
		m.step()
	}
	all := m.drill.Status.Report.Samples
	if len(all) > maxSamples || len(all) < maxSamples/2 {
		t.Errorf("%d samples", len(all))
	}
	for i := range all[1:] {
		if all[i+1].AfterMilliseconds <= all[i].AfterMilliseconds {
			t.Errorf("%+v comes after %+v", all[i+1], all[i])
		}
	}
}

// Failures are counted on where the next process knows of fewer.
func TestSamplesForgetNoFailure(t *testing.T) {
	a := &asks{rate: 1}
	m := probed(t, a)
	m.phase(v1beta1.DrillHolding)
	m.drill.Status.Report.Samples[0].Failed = 7
	m.until("the way back", func() bool { return m.drill.Status.Phase == v1beta1.DrillRecovering })
	for _, s := range m.drill.Status.Report.Samples {
		if s.Failed < 7 {
			t.Errorf("%+v comes after seven failures", s)
		}
	}
}

func TestThinned(t *testing.T) {
	var all []v1beta1.DrillSample
	for i := range int64(maxSamples) {
		all = append(all, v1beta1.DrillSample{AfterMilliseconds: 1000 * i, Ready: 100 - i%2, InDNS: int32(i % 2)})
	}
	if kept := thinned(all[:maxSamples-1]); len(kept) != maxSamples-1 {
		t.Errorf("%d are left of %d, for which there is room", len(kept), maxSamples-1)
	}
	fewer := thinned(all)
	want := v1beta1.DrillSample{AfterMilliseconds: 2000, Ready: 99, InDNS: 1}
	if len(fewer) != maxSamples/2 || !reflect.DeepEqual(fewer[1], want) {
		t.Errorf("%d are left, the second is %+v, want %+v", len(fewer), fewer[1], want)
	}
}
