// Package lookup has what is believed of load balancers that are known by host names: the flags of both programs that plan
// the zone, and a resolver that says whether it validated an answer. What it says is signed with our zone.
//
//	flags := lookup.Flags{}
//	flags.Add(fs, "dns-")
//	err := flags.Validate()
//	flags.Fill(&options)
package lookup
