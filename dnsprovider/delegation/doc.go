// Package delegation asks the parent zone for a zone's DS records (RFC 4034, section 5).
//
//	servers, err := delegation.Asker{}.DS(ctx, "example.com.")
//
// Each of its name servers is asked, for they may not have the same yet. The answer is what all of them said, or an error.
//
// What was traded: the answers are not validated. They come over TCP from the servers that the delegation names, so who forges
// them must be on the way. Where that is not enough, give the servers, and reach them over a way that you trust.
package delegation
