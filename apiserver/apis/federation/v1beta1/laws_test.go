package v1beta1

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// An IPv6 address that leads to an IPv4 address, in whichever form, is refused where that one is, and given out where it is.
func TestEmbeddedAddressesAreWhatTheyLeadTo(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 13))
	firsts := []byte{0, 1, 9, 10, 100, 127, 169, 172, 192, 198, 203, 224, 240, 255}
	seconds := []byte{0, 0, 2, 16, 18, 51, 64, 88, 168, 254, 255}
	refused := 0
	for range 5000 {
		b := [4]byte{firsts[r.IntN(len(firsts))], seconds[r.IntN(len(seconds))], byte(r.IntN(256)), byte(1 + r.IntN(255))}
		four := netip.AddrFrom4(b)
		is := func(err error) string { return fmt.Sprint(err) }
		for form, text := range map[string]string{
			"mapped": "::ffff:" + four.String(), "NAT64": "64:ff9b::" + four.String(), "compatible": "::" + four.String(),
			"6to4": fmt.Sprintf("2002:%02x%02x:%02x%02x::1", b[0], b[1], b[2], b[3]), "of a zone": "::ffff:" + four.String() + "%eth0",
		} {
			addr := netip.MustParseAddr(text)
			if form == "compatible" && b == [4]byte{0, 0, 0, 1} {
				continue // is ::1
			}
			if got, want := is(RefuseAddress(addr)), is(RefuseAddress(four)); got != want {
				t.Fatalf("%s, %s: %s, and %s: %s", form, addr, got, four, want)
			}
			if got, want := is(RefuseAllButPublicAddresses(addr)), is(RefuseAllButPublicAddresses(four)); got != want {
				t.Fatalf("%s, %s: %s, and %s: %s", form, addr, got, four, want)
			}
		}
		if RefuseAddress(four) != nil {
			refused++
		}
	}
	if refused < 500 || refused > 4500 {
		t.Errorf("%d of 5000 are refused: this says little", refused)
	}
}

// The standard library agrees on where no load balancer can be; what is public is never private for it, and is refused by neither.
func TestRefusedAddressesAreThoseOfTheLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 14))
	for range 20_000 {
		var b [16]byte
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		b[0] = []byte{0xfc, 0xfd, 0xfe, 0xff, 0x20, 0x26, 0x2a, 0x30, 0x40}[r.IntN(9)]
		addr := netip.AddrFrom16(b)
		if r.IntN(2) == 0 {
			if near := []byte{10, 100, 169, 172, 172, 192, 198, 203}; r.IntN(2) == 0 {
				b[4] = near[r.IntN(len(near))]
			}
			addr = netip.AddrFrom4([4]byte(b[4:8]))
		}
		if addr.Is6() && b[0] == 0x20 && b[1] <= 2 {
			continue // leads to an IPv4 address, or is one of a registry
		}
		ip := net.IP(addr.AsSlice())
		want := ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || addr.Is4() && (ip.To4()[0] == 0 || ip.Equal(net.IPv4bcast))
		if got := RefuseAddress(addr) != nil; got != want {
			t.Fatalf("%s is refused: %t, want %t", addr, got, want)
		}
		public := RefuseAllButPublicAddresses(addr) == nil
		if public && (want || ip.IsPrivate() || addr.Is6() && b[0]>>5 != 1) || !public && !want && addr.Is4() && !ip.IsPrivate() &&
			!slices.Contains([]byte{100, 192, 198, 203}, b[4]) && b[4] < 240 {
			t.Fatalf("%s is public: %t", addr, public)
		}
	}
}

// oracleShard is FNV-1a of 32 bits, as its authors wrote it down.
func oracleShard(text string) int {
	hash := uint64(2166136261)
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * 16777619 % (1 << 32)
	}
	return int(hash % 64)
}

// The shard of an object is that of its name, in every version of the federation; where an object of a namespace might be taken for one of none,
// they are in one shard, which does no harm.
func TestShardsAreThoseOfTheOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 15))
	seen := map[int]bool{}
	for range 2000 {
		namespace, name := fmt.Sprint("n-", r.IntN(50))[r.IntN(3):], fmt.Sprint("w-", r.IntN(1000))
		got := Shard(namespace, name)
		if want := oracleShard(namespace + "/" + name); got != want {
			t.Fatalf("%s/%s is in shard %d, want %d", namespace, name, got, want)
		}
		seen[got] = true
	}
	if len(seen) != Shards {
		t.Errorf("%d of %d shards have objects", len(seen), Shards)
	}
}

// oraclePrintable goes through a text once, letter by letter: what is not printable is a space, and spaces are one, and none at the ends.
func oraclePrintable(text string) string {
	out := ""
	for _, letter := range text {
		switch {
		case letter != utf8.RuneError && letter != ' ' && unicode.IsPrint(letter):
			out += string(letter)
		case out != "" && !strings.HasSuffix(out, " "):
			out += " "
		}
	}
	out = strings.TrimRight(out, " ")
	if len(out) <= 256 {
		return out
	}
	for len(out) > 253 {
		_, size := utf8.DecodeLastRuneInString(out)
		out = out[:len(out)-size]
	}
	return out + "…"
}

// Whatever a member says is one line of at most 256 bytes, whose letters are whole.
func TestPrintableIsTheOracles(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 16))
	pieces := []string{"a", "b", " ", "  ", "ü", "日本", "\n", "\t", "\x1b[2J", "\x00", "\xff", "\u202e", "\u00a0", "…", "\U0001f600", "é"}
	for range 3000 {
		text := ""
		for range r.IntN(120) {
			text += strings.Repeat(pieces[r.IntN(len(pieces))], 1+r.IntN(3))
		}
		if len(text) > 4*MaxText { // of which only the beginning is read
			continue
		}
		if got, want := Printable(text), oraclePrintable(text); got != want {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	}
}

// The message lists the first clusters in which an object is out of sync, as many as fit, and the number of the others.
func TestOutOfSyncTellsTheFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 17))
	for range 300 {
		all := make([]ClusterOutOfSync, r.IntN(30))
		for i := range all {
			all[i] = ClusterOutOfSync{Cluster: fmt.Sprintf("c-%02d", i), Reason: "Conflict", Message: strings.Repeat([]string{"x", "<", "ü"}[r.IntN(3)], r.IntN(300))}
		}
		o := NewOutOfSync(slices.Clone(all))
		if len(all) == 0 {
			if o != nil || o.In("a") != nil {
				t.Fatalf("of none: %+v", o)
			}
			continue
		}
		if len(o.Clusters)+o.More != len(all) || len(o.Clusters) > 10 {
			t.Fatalf("%d and %d more, of %d", len(o.Clusters), o.More, len(all))
		}
		size := 0
		for i, one := range all {
			one.Message = Printable(one.Message)
			size += len(asJSON(one))
			is := o.In(one.Cluster)
			if fits := i < 10 && size <= 4096; fits != (is != nil) || fits && *is != one {
				t.Fatalf("%d, of %d bytes so far: %+v, want %+v", i, size, is, one)
			}
		}
	}
}

// oracleGranted looks for the longest suffix first, and then for a grant of it.
func oracleGranted(grants []*DNSNameGrant, namespace, host string) (string, bool) {
	labels := strings.Split(strings.ToLower(strings.TrimSuffix(host, ".")), ".")
	for i := range labels {
		suffix, named, granted := strings.Join(labels[i:], "."), false, false
		for _, g := range grants {
			if g.Spec.Suffix == suffix && suffix != "" {
				named, granted = true, granted || slices.Contains(g.Spec.Namespaces, namespace)
			}
		}
		if named {
			return suffix, granted
		}
	}
	return "", true
}

// Who may have a host is decided by the longest suffix that any grant names; grants of the same one add up, and a name is no suffix of another's letters.
func TestDNSNamesAreGrantedByTheLongestSuffix(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 18))
	name := func() string {
		labels := []string{"a", "b", "aa", "A"}
		host := labels[r.IntN(3)]
		for range r.IntN(3) {
			host = labels[r.IntN(3)] + "." + host
		}
		return host
	}
	count := map[string]int{}
	for range 5000 {
		var grants []*DNSNameGrant
		for range r.IntN(5) {
			grants = append(grants, &DNSNameGrant{Spec: DNSNameGrantSpec{Suffix: name(), Namespaces: []string{"shop", "bank"}[r.IntN(3)/2 : r.IntN(2)+1]}})
		}
		host := []string{name(), strings.ToUpper(name()), name() + "."}[r.IntN(3)]
		suffix, granted := DNSNameGranted(grants, "bank", host)
		if wantSuffix, want := oracleGranted(grants, "bank", host); suffix != wantSuffix || granted != want {
			t.Fatalf("%s: %t by %q, want %t by %q, of %s", host, granted, suffix, want, wantSuffix, asJSON(grants))
		}
		slices.Reverse(grants)
		if again, _ := DNSNameGranted(grants, "bank", host); again != suffix {
			t.Fatalf("%s: by %q, and with the grants in another order by %q", host, suffix, again)
		}
		count[fmt.Sprint(suffix != "", granted)]++
	}
	if count["true true"] < 300 || count["true false"] < 300 || count["false true"] < 300 {
		t.Errorf("%v: this says little", count)
	}
}

// Whatever a Service asks for: it has at most one address of a family, in the order of its families, and asks for no family that it does not have;
// those are its clusterset IPs or placeholders, never a mixture, and placeholders are its own for ever.
func TestClusterIPsAreOneOfAFamily(t *testing.T) {
	r := rand.New(rand.NewPCG(19, 19))
	for range 3000 {
		s := ServiceIPs{Namespace: "shop", Name: fmt.Sprint("web-", r.IntN(99)), Annotations: map[string]string{}}
		if value := []string{"", "auto", "10.0.0.1", "fd00::1", "10.0.0.1,fd00::1", "fd00::1,10.0.0.1", "nonsense"}[r.IntN(7)]; value != "" {
			s.Annotations[ClusterSetIPAnnotation] = value
		}
		s.Families = [][]corev1.IPFamily{nil, {"IPv4"}, {"IPv6"}, {"IPv4", "IPv6"}, {"IPv6", "IPv4"}}[r.IntN(5)]
		policy := []corev1.IPFamilyPolicy{"", corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack,
			corev1.IPFamilyPolicyRequireDualStack}[r.IntN(4)]
		if policy != "" {
			s.Policy = &policy
		}
		ips := s.ClusterIPs()
		asked, _ := ParseClusterSetIPs(s.Annotations[ClusterSetIPAnnotation], nil)
		_, asks := s.Annotations[ClusterSetIPAnnotation]
		for i, text := range ips {
			ip := netip.MustParseAddr(text)
			placed := placeholders4.Contains(ip) || placeholders6.Contains(ip)
			if asks == placed || !placed && !slices.Contains(asked, ip) || !s.Given(text) {
				t.Fatalf("%+v has %q", s, ips)
			}
			if i == 0 && len(s.Families) > 0 && ip.Is4() != (s.Families[0] == corev1.IPv4Protocol) || i == 1 && ip.Is4() == netip.MustParseAddr(ips[0]).Is4() {
				t.Fatalf("%+v has %q, in another order than its families", s, ips)
			}
		}
		single := policy == "" || policy == corev1.IPFamilyPolicySingleStack
		if most := map[bool]int{true: 1, false: 2}[single]; len(ips) > most || !asks && len(ips) != most || asks && len(ips) > len(asked) {
			t.Fatalf("%+v has %q, want %d at most", s, ips, most)
		}
		if again := s.ClusterIPs(); !slices.Equal(again, ips) {
			t.Fatalf("%+v has %q, and then %q", s, ips, again)
		}
	}
}

// A percentage is from 1 to 100, in digits and with its sign, and nothing besides; clusterset IPs are read in the order in which they stand.
func TestValuesOfCrossClusterAnnotations(t *testing.T) {
	for n := -5; n <= 300; n++ {
		value := fmt.Sprint(n, "%")
		if got := len(ValidateFallbackBelow(value, field.NewPath("a"))) == 0; got != (n >= 1 && n <= 100) {
			t.Errorf("%s is allowed: %t", value, got)
		}
	}
	for _, bad := range []string{"+5%", "5 %", " 5%", "5%%", "0x5%", "5e1%", "5.0%", "٥%", "five%"} {
		if len(ValidateFallbackBelow(bad, nil)) == 0 {
			t.Errorf("%q is allowed", bad)
		}
	}
	for value, want := range map[string][]netip.Addr{"auto": nil, "10.0.0.1": {netip.MustParseAddr("10.0.0.1")},
		"fd00::1,10.0.0.1": {netip.MustParseAddr("fd00::1"), netip.MustParseAddr("10.0.0.1")}} {
		if got, errs := ParseClusterSetIPs(value, nil); len(errs) > 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %v, %v", value, got, errs)
		}
	}
}
