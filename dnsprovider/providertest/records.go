package providertest

import (
	"slices"

	"federation/dnsprovider"
)

func (s *suite) sorted() {
	s.applyAndCheck(s.set("c", dnsprovider.A, "192.0.2.1"), s.set("b", dnsprovider.AAAA, "2001:db8::1"),
		s.set("b", dnsprovider.A, "192.0.2.1"), s.set("a", dnsprovider.A, "192.0.2.1"))
	if sets := s.records(); len(sets) != 4 || !slices.IsSortedFunc(sets, dnsprovider.Compare) {
		s.Errorf("not the four that were put in, sorted: %v", sets)
	}
}

func (s *suite) copies() {
	s.applyAndCheck(s.set("a", dnsprovider.A, "192.0.2.1", "192.0.2.2"))
	s.records()[0].Rdata[0] = "192.0.2.9"
	s.checkZone(s.set("a", dnsprovider.A, "192.0.2.1", "192.0.2.2"))
}
