package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func ranges(t *testing.T, texts ...string) Ranges {
	t.Helper()
	r, err := ParseRanges(texts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func service(key, value string, day int) Service {
	return Service{Key: key, Value: value, Created: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)}
}

// show formats a decision in lines, sorted.
func show(d Decision) (out []string) {
	for a, key := range d.Claims {
		out = append(out, fmt.Sprint("claim ", a, " ", key))
	}
	for key, value := range d.Values {
		out = append(out, fmt.Sprint("write ", key, " ", value))
	}
	for _, a := range d.Leaks {
		out = append(out, fmt.Sprint("leak ", a))
	}
	for key, faults := range d.Faults {
		for _, f := range faults {
			out = append(out, fmt.Sprint("fault ", key, " ", f.Reason))
		}
	}
	slices.Sort(out)
	return out
}

func TestRanges(t *testing.T) {
	for _, bad := range [][]string{{"10.0.0.0"}, {"10.0.0.1/24"}, {"10.0.0.0/31"}, {"10.0.0.0/7"}, {"fd00::/63"}, {"fd00::/127"}, {"224.0.0.0/24"}, {"127.0.0.0/24"}, {"10.0.0.0/24", "10.1.0.0/24"}, {""}} {
		if _, err := ParseRanges(bad); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", bad[len(bad)-1])) {
			t.Errorf("%q: %v, want an error that names it", bad, err)
		}
	}
	ranges(t, "10.0.0.0/30", "fd00::/64")
	ranges(t)
}

func TestDecide_ClusterSetIPs(t *testing.T) {
	dual := service("a/web", "auto", 1)
	dual.Dual = true
	six := service("a/web", "auto", 1)
	six.Families = []corev1.IPFamily{corev1.IPv6Protocol}
	small := ranges(t, "10.0.0.0/30") // .1 and .2 can be given
	both := ranges(t, "10.0.0.0/30", "fd00::/126")
	for _, c := range []struct {
		name     string
		ranges   Ranges
		held     map[string]string
		services []Service
		want     []string
	}{
		{"nobody asks", small, nil, nil, nil},
		{"one asks", small, nil, []Service{service("a/web", "auto", 1)}, []string{"claim 10.0.0.2 a/web", "write a/web 10.0.0.2"}},
		{"two ask", small, nil, []Service{service("a/web", "auto", 1), service("b/web", "auto", 2)}, []string{"claim 10.0.0.1 b/web", "claim 10.0.0.2 a/web", "write a/web 10.0.0.2", "write b/web 10.0.0.1"}},
		{"it is held and written", small, map[string]string{"10.0.0.2": "a/web"}, []Service{service("a/web", "10.0.0.2", 1)}, nil},
		{"it is held and was not written", small, map[string]string{"10.0.0.1": "a/web"}, []Service{service("a/web", "auto", 1)}, []string{"write a/web 10.0.0.1"}},
		{"it is written and not held: repaired", small, nil, []Service{service("a/web", "10.0.0.1", 1)}, []string{"claim 10.0.0.1 a/web"}},
		{"who asks does not get what another says", small, nil, []Service{service("a/web", "auto", 1), service("b/web", "10.0.0.2", 2)}, []string{"claim 10.0.0.1 a/web", "claim 10.0.0.2 b/web", "write a/web 10.0.0.1"}},
		{"two say the same: the holder has it", small, map[string]string{"10.0.0.1": "b/web"}, []Service{service("a/web", "10.0.0.1", 1), service("b/web", "10.0.0.1", 2)},
			[]string{"claim 10.0.0.2 a/web", "fault a/web Clash", "write a/web 10.0.0.2"}},
		{"two say the same, nobody holds it: the older has it", small, nil, []Service{service("b/web", "10.0.0.1", 2), service("a/web", "10.0.0.1", 1)},
			[]string{"claim 10.0.0.1 a/web", "claim 10.0.0.2 b/web", "fault b/web Clash", "write b/web 10.0.0.2"}},
		{"an address is reserved by hand", small, map[string]string{"10.0.0.2": ""}, []Service{service("a/web", "auto", 1)}, []string{"claim 10.0.0.1 a/web", "write a/web 10.0.0.1"}},
		{"the range is full", small, map[string]string{"10.0.0.1": "", "10.0.0.2": "b/web"}, []Service{service("a/web", "auto", 1), service("b/web", "10.0.0.2", 1)}, []string{"fault a/web RangeFull"}},
		{"a Service is gone", small, map[string]string{"10.0.0.1": "a/gone", "10.0.0.2": ""}, nil, []string{"leak 10.0.0.1"}},
		{"a Service holds one too many", small, map[string]string{"10.0.0.1": "a/web", "10.0.0.2": "a/web"}, []Service{service("a/web", "10.0.0.2", 1)}, []string{"leak 10.0.0.1"}},
		{"no range", nil, nil, []Service{service("a/web", "auto", 1)}, []string{"fault a/web RangeMissing"}},
		{"no range any more", nil, map[string]string{"10.0.0.1": "a/web"}, []Service{service("a/web", "10.0.0.1", 1)}, []string{"fault a/web OutOfRange"}},
		{"another range than before", ranges(t, "10.9.0.0/30"), map[string]string{"10.0.0.1": "a/web"}, []Service{service("a/web", "10.0.0.1", 1)}, []string{"fault a/web OutOfRange"}},
		{"two families", both, nil, []Service{dual}, []string{"claim 10.0.0.2 a/web", "claim fd00::2 a/web", "write a/web 10.0.0.2,fd00::2"}},
		{"one of two families", both, nil, []Service{six}, []string{"claim fd00::2 a/web", "write a/web fd00::2"}},
		{"a family without a range", small, nil, []Service{six}, []string{"fault a/web RangeMissing"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{Ranges: c.ranges, Services: c.services, Held: map[netip.Addr]string{}}
			for a, key := range c.held {
				in.Held[addr(a)] = key
			}
			if got := show(Decide(in)); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Whatever is annotated and held: once everything is done nothing is left to do, no address has two holders or is in
// two annotations, and the order of the input does not matter.
func TestClusterSetIPLaws(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	values := []string{"auto", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.9.9.9", "rubbish", "10.0.0.1,fd00::1"}
	for range 3000 {
		in := Input{Ranges: ranges(t, "10.0.0.0/29", "fd00::/125"), Held: map[netip.Addr]string{}}
		for i := range random.IntN(9) {
			s := service(fmt.Sprint("s/", i), values[random.IntN(len(values))], random.IntN(3)+1)
			s.Dual = random.IntN(2) == 0
			in.Services = append(in.Services, s)
		}
		for range random.IntN(6) {
			in.Held[addr(fmt.Sprint("10.0.0.", random.IntN(8)))] = []string{"", "s/0", "s/1", "s/2", "s/77"}[random.IntN(5)]
		}
		d := Decide(in)
		random.Shuffle(len(in.Services), func(i, j int) { in.Services[i], in.Services[j] = in.Services[j], in.Services[i] })
		if again := Decide(in); !slices.Equal(show(again), show(d)) {
			t.Fatalf("the order matters: %q, %q", show(d), show(again))
		}
		next := done(t, in)
		if len(d.Leaks) > 0 {
			next = done(t, next) // a Service that found the range full gets a released address
		}
		if left := Decide(next); len(left.Claims)+len(left.Values)+len(left.Leaks) > 0 {
			t.Fatalf("of %+v\nafter %q there is more to do: %q", in, show(d), show(left))
		}
	}
}

// done returns the input once a decision has been carried out.
func done(t *testing.T, in Input) Input {
	t.Helper()
	d, next, said := Decide(in), Input{Ranges: in.Ranges, Held: maps.Clone(in.Held)}, map[string]string{}
	for a, key := range d.Claims {
		if _, held := next.Held[a]; held {
			t.Fatalf("%s is claimed and held", a)
		}
		next.Held[a] = key
	}
	for _, a := range d.Leaks {
		delete(next.Held, a)
	}
	for _, s := range in.Services {
		if value, ok := d.Values[s.Key]; ok {
			s.Value = value
		}
		for _, a := range strings.Split(s.Value, ",") {
			if said[a] != "" && a != "auto" {
				t.Fatalf("%s is said by %s and %s", a, s.Key, said[a])
			}
			said[a] = s.Key
		}
		next.Services = append(next.Services, s)
	}
	return next
}
