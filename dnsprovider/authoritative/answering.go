package authoritative

// answering is all that messages are answered from.
type answering struct {
	service
	zone      *zone
	transfers *transfers
}

// newAnswering returns that of a zone without a snapshot. Options have their defaults.
func newAnswering(options Options, name string) *answering {
	a := &answering{zone: &zone{name: name}}
	a.Options, a.denials = options, newDenials()
	a.cookies.Store(&cookieSecrets{options.CookieSecret, options.PreviousCookieSecret})
	if options.CookieSecret == (CookieSecret{}) {
		a.cookies.Store(&cookieSecrets{current: newCookieSecret()})
	}
	if options.RateLimit > 0 {
		a.limiter = newLimiter(options.RateLimit)
	}
	a.transfers = newTransfers(options.Transfers, a.zone)
	a.zone.changed = a.transfers.observe
	return a
}
