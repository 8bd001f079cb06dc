package console

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	oidc "github.com/coreos/go-oidc"
	"golang.org/x/oauth2"
)

// OIDC names the issuer at which people log in. The API must accept its tokens, too (--authentication-config).
type OIDC struct {
	// Issuer is its URL, which serves /.well-known/openid-configuration.
	Issuer string
	// ClientID and ClientSecret are the console's at the issuer; a public client has no secret.
	ClientID, ClientSecret string
	// Scopes are asked for beside openid.
	Scopes []string
	// CA has the authorities of the issuer's certificate; nil: the system's.
	CA *x509.CertPool
}

const (
	loginCookie = sessionCookie + "-login"
	// loginTime is how long somebody may take to log in at the issuer, issuerTimeout how long one of our requests to it may take, and askAgain for how long
	// one that failed is not repeated.
	loginTime, issuerTimeout, askAgain = 10 * time.Minute, 10 * time.Second, 5 * time.Second
)

// login is the code flow with PKCE, done by this server: no page ever has a token.
type login struct {
	OIDC
	client *http.Client

	mu       sync.Mutex
	provider *oidc.Provider // nil before the first login
	failed   error          // why the last attempt, at askedAt, failed
	askedAt  time.Time
}

func newLogin(o OIDC) *login {
	transport := http.DefaultTransport.(*http.Transport).Clone() // it is one
	transport.TLSClientConfig = &tls.Config{RootCAs: o.CA, MinVersion: tls.VersionTLS12}
	return &login{OIDC: o, client: &http.Client{Transport: transport, Timeout: issuerTimeout}}
}

// discover returns what the issuer says of itself. An issuer that does not answer is asked again after askAgain.
func (l *login) discover() (*oidc.Provider, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.provider != nil {
		return l.provider, nil
	}
	if l.failed != nil && time.Since(l.askedAt) < askAgain {
		return nil, l.failed
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(context.Background(), l.client), l.Issuer) // it keeps the context for its keys
	if err != nil {
		l.failed, l.askedAt = fmt.Errorf("the issuer %s does not answer as one: %w", l.Issuer, err), time.Now()
		return nil, l.failed
	}
	l.provider = provider
	return provider, nil
}

// flow is what a login remembers in the browser until the issuer sends it back, sealed.
type flow struct{ State, Nonce, Verifier string }

func (l *login) config(p *oidc.Provider, r *http.Request) *oauth2.Config {
	return &oauth2.Config{
		ClientID: l.ClientID, ClientSecret: l.ClientSecret, Endpoint: p.Endpoint(), Scopes: append([]string{oidc.ScopeOpenID}, l.Scopes...),
		RedirectURL: "https://" + r.Host + Prefix + "/callback", // the host is one of ours
	}
}

// serveLogin sends the browser to the issuer.
func (c *Console) serveLogin(w http.ResponseWriter, r *http.Request) {
	p, err := c.oidc.discover()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	f := flow{State: newNonce(), Nonce: newNonce(), Verifier: oauth2.GenerateVerifier()}
	content, err := json.Marshal(f)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Lax: the browser comes back from another site.
	setCookie(w, loginCookie, c.sessions.sealed(loginCookie, c.sessions.now().Add(loginTime), content), http.SameSiteLaxMode, loginTime)
	http.Redirect(w, r, c.oidc.config(p, r).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), http.StatusFound)
}

// serveCallback takes the browser back from the issuer, and begins its session.
func (c *Console) serveCallback(w http.ResponseWriter, r *http.Request, api http.Handler) {
	setCookie(w, loginCookie, "", http.SameSiteLaxMode, 0) // it is good for one answer
	token, err := c.tokenOf(r)
	if err == nil {
		_, err = c.logIn(w, r, api, token)
	}
	if err != nil {
		http.Error(w, "You are not logged in: "+err.Error()+". Try again at "+Prefix+"/", http.StatusForbidden)
		return
	}
	http.Redirect(w, r, Prefix+"/", http.StatusSeeOther)
}

// tokenOf exchanges the code of a callback for an ID token of this login.
func (c *Console) tokenOf(r *http.Request) (string, error) {
	cookie, err := r.Cookie(loginCookie)
	if err != nil {
		return "", errors.New("this login was not begun in this browser, or took too long")
	}
	content, _, err := c.sessions.open(loginCookie, cookie.Value)
	var f flow
	if err != nil || json.Unmarshal(content, &f) != nil {
		return "", errors.New("this login was not begun in this browser, or took too long")
	}
	query := r.URL.Query()
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(f.State)) != 1 {
		return "", errors.New("the answer is to another login")
	}
	if why := query.Get("error"); why != "" {
		return "", fmt.Errorf("the issuer refused with %.100q", why)
	}
	p, err := c.oidc.discover()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(r.Context(), c.oidc.client), issuerTimeout)
	defer cancel()
	answer, err := c.oidc.config(p, r).Exchange(ctx, query.Get("code"), oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return "", errors.New("the issuer did not exchange the code") // its words may have secrets
	}
	raw, _ := answer.Extra("id_token").(string)
	id, err := p.Verifier(&oidc.Config{ClientID: c.oidc.ClientID, Now: c.sessions.now}).Verify(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("the issuer's ID token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(f.Nonce)) != 1 {
		return "", errors.New("the issuer's ID token is of another login")
	}
	return raw, nil
}
