package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"

	"github.com/miekg/dns"
)

const zoneName = "example.com."

// perService is how many names a service has.
const perService = 7

// service names the i-th service's part of all its names.
func service(i int) string { return fmt.Sprintf("web-%d.team-%d.fed.svc", i, i%50) }

// hasAlias reports whether one of the service's zones has nothing of its own.
func hasAlias(i int) bool { return i%10 == 0 }

func regionOf(i, r int) string { return fmt.Sprintf("%s.region-%d.%s", service(i), r, zoneName) }

func zoneOf(i, r int) string {
	return fmt.Sprintf("%s.zone-%d.region-%d.%s", service(i), r, r, zoneName)
}

func address(i, r int) string { return fmt.Sprintf("10.%d.%d.%d", i>>8%256, i%256, r+1) }

// writeZone writes a master file of that many names.
func writeZone(file string, names int) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(w, format, values...) } // a failure stays until Flush
	line("%[1]s 300 IN SOA ns.%[1]s hostmaster.%[1]s 1 60 10 604800 5\n%[1]s 300 IN NS ns.%[1]s\nns.%[1]s 300 IN A 127.0.0.1\n", zoneName)
	for i := range names / perService {
		for r := range 3 {
			line("%s.%s 15 IN A %s\n", service(i), zoneName, address(i, r))
			line("%s 15 IN A %s\n", regionOf(i, r), address(i, r))
			if r == 0 && hasAlias(i) {
				line("%s 15 IN CNAME %s\n", zoneOf(i, r), regionOf(i, r))
			} else {
				line("%s 15 IN A %s\n", zoneOf(i, r), address(i, r))
			}
		}
	}
	return w.Flush()
}

// queries makes n packed queries for a zone of that many names: 70 % for names of all regions, 15 % for
// zones, 10 % for aliases, 5 % for names that do not exist.
func queries(n, names int) ([][]byte, error) {
	r := rand.New(rand.NewPCG(1, uint64(names)))
	packed := make([][]byte, n)
	for at := range packed {
		i := r.IntN(names / perService)
		name := service(i) + "." + zoneName
		switch p := r.IntN(100); {
		case p >= 95:
			name = "no-" + name
		case p >= 85:
			name = zoneOf(i-i%10, 0)
		case p >= 70:
			name = zoneOf(i, 1+r.IntN(2))
		}
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		m.RecursionDesired = false
		m.SetEdns0(1232, false)
		var err error
		if packed[at], err = m.Pack(); err != nil {
			return nil, err
		}
	}
	return packed, nil
}
