package fleettest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

const placesHaveNames = "each place has a name of what any cluster serves"

// checkNames checks that a Service that has addresses has the names of the region and of the zones of each joined cluster, also where that cluster has no
// load balancer of it: pods there ask for these.
func checkNames(f *Fleet, law lawFunc) {
	named := map[string]bool{}
	for record := range f.DNS.data() {
		named[record.Name] = true
	}
	for _, u := range f.Federation.List(services, nil) {
		if u.GetDeletionTimestamp() != nil || valueAt(u, "spec.type") != string(corev1.ServiceTypeLoadBalancer) || !named[globalName(u)] {
			continue
		}
		for _, m := range f.Members() {
			c := f.clusters.named(m.Name)
			if c == nil || c.Status.Region == "" {
				continue
			}
			f.tally.check(placesHaveNames)
			base := fmt.Sprintf("%s.%s.fed.svc", u.GetName(), u.GetNamespace())
			wanted := []string{fmt.Sprintf("%s.%s.%s", base, c.Status.Region, zone)}
			for _, z := range c.Status.Zones {
				wanted = append(wanted, fmt.Sprintf("%s.%s.%s.%s", base, z, c.Status.Region, zone))
			}
			for _, name := range wanted {
				if !named[name] {
					law(placesHaveNames, "%s has addresses, and there is no %s, where %s is", globalName(u), name, m.Name)
				}
			}
		}
	}
}
