package plan

import (
	"slices"
	"time"

	"federation/apiserver/apis/federation/v1beta1"
)

const (
	// maxSamples is the maximum of samples of a drill: some 8 kB of its status.
	maxSamples = 120
	// A sample holds for a samplePart of the time since the fault, or since the way back began, and from shortestSample to
	// longestSample: most happens right after these.
	samplePart                    = 20
	shortestSample, longestSample = tick, 10 * time.Second
)

// takeSample records how the drill stands, where that has changed since the last sample and that has held long enough.
func (m *meter) takeSample() {
	r := m.report
	if r == nil || r.Marks.Injected == nil {
		return
	}
	since, begun := m.Now.Sub(r.Marks.Injected.Time), r.Marks.Injected.Time
	if r.Marks.Recovering != nil {
		begun = r.Marks.Recovering.Time
	}
	is := v1beta1.DrillSample{AfterMilliseconds: since.Milliseconds(), InDNS: m.followed().inDNS()}
	for i := range m.Objects {
		o := &m.Objects[i]
		is.Ready += min(o.Asked, o.Ready)
		is.InScope += o.replicasIn(m.next.Clusters)
	}
	for _, c := range m.Clients {
		is.Failed += c.Failed
	}
	if n := len(r.Samples); n > 0 {
		last := r.Samples[n-1]
		is.Failed = max(is.Failed, last.Failed) // a process that takes over counts on from an older note
		holds := min(max(shortestSample, m.Now.Sub(begun)/samplePart), longestSample)
		same := last
		if same.AfterMilliseconds = is.AfterMilliseconds; same == is || is.AfterMilliseconds-last.AfterMilliseconds < holds.Milliseconds() {
			return
		}
	}
	r.Samples = append(thinned(r.Samples), is)
}

// thinned returns samples with room for one more. Where there is none each two become one: of the first's time, with the
// fewest that were ready and the most that were in DNS.
func thinned(samples []v1beta1.DrillSample) (fewer []v1beta1.DrillSample) {
	if len(samples) < maxSamples {
		return samples
	}
	for two := range slices.Chunk(samples, 2) {
		one, second := two[0], two[len(two)-1]
		one.Ready, one.InDNS = min(one.Ready, second.Ready), max(one.InDNS, second.InDNS)
		fewer = append(fewer, one)
	}
	return fewer
}
