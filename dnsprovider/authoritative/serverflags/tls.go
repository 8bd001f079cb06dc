package serverflags

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"federation/dnsprovider/authoritative"
)

// tlsFlags are those of DNS over TLS.
type tlsFlags struct{ listen, cert, key string }

func (f *tlsFlags) add(fs *pflag.FlagSet, prefix string) {
	fs.StringVar(&f.listen, prefix+"tls-listen", "", "`HOST:PORT` for DNS over TLS (RFC 7858), as :853; without it nowhere")
	fs.StringVar(&f.cert, prefix+"tls-cert-file", "", "`FILE` with the certificate for DNS over TLS, and those above it, as PEM; read again when it changes")
	fs.StringVar(&f.key, prefix+"tls-key-file", "", "`FILE` with the private key of that certificate, as PEM")
}

func (f *tlsFlags) fill(o *authoritative.Options, prefix string) error {
	if (f.listen == "") != (f.cert == "") || (f.cert == "") != (f.key == "") {
		return fmt.Errorf("--%[1]stls-listen, --%[1]stls-cert-file and --%[1]stls-key-file: must be all three or none", prefix)
	}
	if f.listen == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(f.listen); err != nil {
		return fmt.Errorf("--%stls-listen %q: must be HOST:PORT (%v)", prefix, f.listen, err)
	}
	c := &certificate{tlsFlags: *f}
	if err := c.load(); err != nil {
		return fmt.Errorf("--%stls-cert-file: %w", prefix, err)
	}
	o.TLSListen = f.listen
	o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	return nil
}

// certificate is what is in the files.
type certificate struct {
	tlsFlags
	mu       sync.Mutex
	loaded   *tls.Certificate
	modified time.Time
}

// load reads the files.
func (c *certificate) load() error {
	info, err := os.Stat(c.cert)
	if err != nil {
		return err
	}
	loaded, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.loaded, c.modified = &loaded, info.ModTime()
	return nil
}

// get returns the certificate for a connection. If the files have changed and cannot be read, it stays the old one.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if info, err := os.Stat(c.cert); err == nil && !info.ModTime().Equal(c.modified) {
		if err := c.load(); err != nil {
			slog.Error("The certificate for DNS over TLS stays as it was", "file", c.cert, "err", err)
		}
	}
	return c.loaded, nil
}
