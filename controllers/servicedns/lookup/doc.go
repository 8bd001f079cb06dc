// Package lookup decides how far to trust the host names of load balancers: it has the flags of both programs that plan the
// zone, and a resolver that reports whether an answer was validated. The answers are signed with our zone.
//
//	flags := lookup.Flags{}
//	flags.Add(fs, "dns-")
//	err := flags.Validate()
//	flags.Fill(&options)
package lookup
