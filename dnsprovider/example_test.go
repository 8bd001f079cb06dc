package dnsprovider_test

import (
	"fmt"

	"federation/dnsprovider"
)

// The only cluster of a zone is lost: its address goes, and the name becomes a CNAME of the region's, in one step.
func ExampleDiff() {
	address, err := dnsprovider.New("web.shop.fed.svc.a.east.example.com", dnsprovider.A, 15, "192.0.2.1")
	if err != nil {
		panic(err)
	}
	region, err := dnsprovider.New("web.shop.fed.svc.a.east.example.com", dnsprovider.CNAME, 15, "web.shop.fed.svc.east.example.com")
	if err != nil {
		panic(err)
	}
	changes := dnsprovider.Diff([]dnsprovider.RRSet{address}, []dnsprovider.RRSet{region})
	fmt.Println(len(changes), "step")
	fmt.Print(changes)
	// Output:
	// 1 step
	// - web.shop.fed.svc.a.east.example.com. 15 IN A 192.0.2.1
	// + web.shop.fed.svc.a.east.example.com. 15 IN CNAME web.shop.fed.svc.east.example.com.
}
