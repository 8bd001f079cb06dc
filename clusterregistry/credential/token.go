package credential

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// TokenLifetime is what is asked for where nobody says otherwise; the cluster may grant less. LeastTokenLifetime and MostTokenLifetime are what
// the API of Kubernetes takes.
const (
	TokenLifetime      = 24 * time.Hour
	LeastTokenLifetime = 10 * time.Minute
	MostTokenLifetime  = 1 << 32 * time.Second
)

// Token is what a service account's token says of itself. It is not verified: the cluster does that.
type Token struct {
	Namespace, ServiceAccount string
	// Secret is the name of the one that the token is bound to; "": none.
	Secret          string
	Issued, Expires time.Time
}

// farAway is beyond what a time in a token may be, in seconds since 1970: centuries, with which nobody can reckon.
const farAway = 1 << 34

// ParseToken reads the claims of a service account's token. It returns false for other tokens and
// for such as never expire.
func ParseToken(token string) (Token, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return Token{}, false
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Token{}, false
	}
	var claims struct {
		Sub string
		Iat float64
		Exp float64
		K8s struct {
			Secret struct{ Name string }
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(b, &claims) != nil || claims.Exp <= claims.Iat || claims.Iat <= 0 || claims.Exp > farAway {
		return Token{}, false
	}
	subject := strings.Split(claims.Sub, ":")
	if len(subject) != 4 || subject[0] != "system" || subject[1] != "serviceaccount" {
		return Token{}, false
	}
	return Token{
		Namespace: subject[2], ServiceAccount: subject[3], Secret: claims.K8s.Secret.Name,
		Issued: time.Unix(int64(claims.Iat), 0), Expires: time.Unix(int64(claims.Exp), 0),
	}, true
}

// renewAfter is the part of its life after which a token is renewed. It is well before the end, so
// that tokens outlive a federation that is down for some hours.
const renewAfter = 0.5

// Lifetime is how long the token lasts from its issue.
func (t Token) Lifetime() time.Duration { return t.Expires.Sub(t.Issued) }

// RenewAt is when to ask for the next token.
func (t Token) RenewAt() time.Time {
	return t.Issued.Add(time.Duration(float64(t.Lifetime()) * renewAfter))
}
