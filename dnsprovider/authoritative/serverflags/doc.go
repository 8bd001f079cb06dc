// Package serverflags has the flags of the built-in DNS server that its two programs share: federation-dns, and "federation
// serve", where they begin with "dns-".
//
//	flags := serverflags.Flags{}
//	flags.Add(fs, "dns-")
//	err := flags.Fill(&options)
//	flags.Follow(ctx) // reads files again when they change
package serverflags
