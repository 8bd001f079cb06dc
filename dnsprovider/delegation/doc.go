// Package delegation asks the parent zone for a zone's DS records (RFC 4034, section 5).
//
//	servers, err := delegation.Asker{}.DS(ctx, "example.com.")
//
// It asks each of its name servers, because they may not all have the same yet. It returns all their answers, or an error.
//
// What was traded: the answers are not validated. They come over TCP from the servers that the delegation names, so a forger
// must be on the path. If that is not enough, configure the servers, and reach them over a path that you trust.
package delegation
