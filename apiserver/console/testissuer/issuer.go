// Package testissuer is an OpenID Connect issuer for tests.
package testissuer

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

// Issuer is an OpenID Connect issuer over TLS that knows one person, checks PKCE, and lets each code be used once.
type Issuer struct {
	*httptest.Server
	// Claims changes those of the next ID tokens.
	Claims func(map[string]any)

	key   *rsa.PrivateKey
	codes map[string]url.Values // the request that each code is the answer to
}

// New starts an issuer, which the test's end ends.
func New(t *testing.T) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{key: key, codes: map[string]url.Values{}, Claims: func(map[string]any) {}}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, content any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(content); err != nil {
			t.Error(err)
		}
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encoded(key.N.Bytes()), "e": encoded(binary.BigEndian.AppendUint32(nil, uint32(key.E))[1:])}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) { // nobody is asked for a password
		asked := r.URL.Query()
		http.Redirect(w, r, asked.Get("redirect_uri")+"?"+url.Values{"code": {i.Code(asked)}, "state": {asked.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		code := r.PostFormValue("code")
		asked, known := i.codes[code]
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if delete(i.codes, code); !known || asked.Get("code_challenge") != encoded(sum[:]) || asked.Get("redirect_uri") != r.PostFormValue("redirect_uri") {
			http.Error(w, `{"error": "invalid_grant"}`, http.StatusBadRequest)
			return
		}
		token := i.Token(t, map[string]any{"aud": asked.Get("client_id"), "nonce": asked.Get("nonce")})
		answer(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": token})
	})
	i.Server = httptest.NewTLSServer(mux)
	t.Cleanup(i.Close)
	return i
}

// Code returns a code for a request to authorize.
func (i *Issuer) Code(asked url.Values) string {
	code := fmt.Sprint("code-", len(i.codes), asked.Get("state"))
	i.codes[code] = asked
	return code
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Token returns an ID token for alice with these claims and its usual ones.
func (i *Issuer) Token(t *testing.T, claims map[string]any) string {
	t.Helper()
	now := time.Now()
	claims["iss"], claims["sub"], claims["iat"], claims["exp"] = i.URL, "alice", now.Unix(), now.Add(time.Hour).Unix()
	i.Claims(claims)
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := encoded([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + encoded(payload)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + encoded(signature)
}
