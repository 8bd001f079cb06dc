package console

import "net/http"

// RefuseForeign refuses what a page of another origin has a browser do in its user's name: write, or open a connection
// that goes both ways. Browsers send client certificates, and headers that a proxy adds, with every request; a bearer
// token is only sent by those who have it, so requests with one pass.
func RefuseForeign(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" && isCrossOrigin(origin, r) {
			http.Error(w, "refused: a page of another origin asked for this", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isCrossOrigin(origin *http.CrossOriginProtection, r *http.Request) bool {
	if r.Header.Get("Upgrade") == "" {
		return origin.Check(r) != nil
	}
	as := *r
	as.Method = http.MethodPost // it is no safe method, whatever its name
	return origin.Check(&as) != nil
}
