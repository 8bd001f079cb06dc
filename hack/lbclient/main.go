// Command lbclient is both ends of a test of load balancers: servers as clusters' load balancers, and clients of federation-lb.
//
//	lbclient serve --address 192.0.2.1:80 --name east-a
//	lbclient visit --addresses 192.0.2.201:80,192.0.2.202:80 --host www.example.test --rate 100 --kept 20
//
// With --tls the servers have certificates that bear their names, and clients look whether the one that they see is that of who answers.
//
// visit sends GETs at a steady rate, each over a connection of its own, and as many over kept-alive connections; as browsers do, it tries the next
// address where nobody takes a connection. Each line of standard input begins a new line of the table that it prints when the
// input, or the line "end", ends it: requests, those that failed, those that took longer than a second, the slowest, and who answered: a server by its
// name, a pod on a real node by its cluster.
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

func main() {
	address := pflag.String("address", "", "`HOST:PORT` to serve at")
	name := pflag.String("name", "", "what the server answers")
	addresses := pflag.StringSlice("addresses", nil, "`HOST:PORT` of each load balancer")
	host := pflag.String("host", "", "host to ask for")
	rate := pflag.Int("rate", 100, "requests a second over new connections")
	secure := pflag.Bool("tls", false, "serve, or visit, by TLS")
	kept := pflag.Int("kept", 20, "kept-alive connections, which send as many requests together; 0: only new ones")
	pflag.Parse()
	var err error
	switch pflag.Arg(0) {
	case "serve":
		err = serve(*address, *name, *secure)
	case "visit":
		visit(*addresses, *host, *rate, *kept, *secure)
	default:
		err = errors.New("must be serve or visit")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lbclient:", err)
		os.Exit(1)
	}
}

// serve answers with a name, after a moment.
func serve(address, name string, secure bool) error {
	server := &http.Server{Addr: address, ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
		_, _ = io.WriteString(w, name) // who asked may be gone
	})}
	if !secure {
		return server.ListenAndServe()
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(crand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	return server.ListenAndServeTLS("", "")
}

// phase is one line of the table.
type phase struct {
	name         string
	mu           sync.Mutex
	sent, failed int
	// slow counts those that took longer than a second.
	slow    int
	slowest time.Duration
	by      map[string]int
	errors  map[string]int
}

func (p *phase) add(took time.Duration, who string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	if took > time.Second {
		p.slow++
	}
	if p.slowest = max(p.slowest, took); err != nil {
		p.failed++
		p.errors[err.Error()]++
		return
	}
	p.by[who]++
}

func (p *phase) print() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Printf("%-28s %6d requests, %4d failed, %4d over 1 s, slowest %5d ms ", p.name, p.sent, p.failed, p.slow, p.slowest.Milliseconds())
	for _, who := range slices.Sorted(maps.Keys(p.by)) {
		fmt.Printf(" %s %d", who, p.by[who])
	}
	fmt.Println()
	for text, n := range p.errors {
		fmt.Printf("    %d × %s\n", n, text)
	}
}

// visit sends requests until standard input ends.
func visit(addresses []string, host string, rate, kept int, secure bool) {
	dial := func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		for _, at := range rand.Perm(len(addresses)) {
			if c, err = (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addresses[at]); err == nil {
				return c, nil
			}
		}
		return nil, err
	}
	url, trust := "http://"+host+"/", (*tls.Config)(nil)
	if secure {
		url, trust = "https://"+host+"/", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // ask looks whose certificate it is
	}
	once := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial, TLSClientConfig: trust}}
	alive := make([]*http.Client, kept) // a connection each
	for i := range alive {
		alive[i] = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dial, TLSClientConfig: trust}}
	}
	phases := make(chan string)
	go func() {
		defer close(phases)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			phases <- lines.Text()
		}
	}()
	var all []*phase
	var running sync.WaitGroup
	send := func(by *http.Client, p *phase) {
		running.Go(func() {
			began := time.Now()
			who, err := ask(by, url)
			p.add(time.Since(began), who, err)
		})
	}
	tick := time.NewTicker(time.Second / time.Duration(rate))
	for turn := 0; ; turn++ {
		select {
		case name, more := <-phases:
			if !more || name == "end" { // others may hold the other end of a pipe
				running.Wait()
				for _, p := range all {
					p.print()
				}
				return
			}
			all = append(all, &phase{name: name, by: map[string]int{}, errors: map[string]int{}})
		case <-tick.C:
			if len(all) > 0 {
				send(once, all[len(all)-1])
				if kept > 0 {
					send(alive[turn%kept], all[len(all)-1])
				}
			}
		}
	}
}

func ask(by *http.Client, url string) (string, error) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := by.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }() // what was read stays
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	who := string(text)
	if _, node, is := strings.Cut(who, " on "); is { // a pod's answer
		who, _, _ = strings.Cut(node, "-node-")
	}
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", answer.StatusCode, strings.TrimSpace(string(text)))
	}
	if err == nil && answer.TLS != nil && answer.TLS.PeerCertificates[0].Subject.CommonName != string(text) {
		err = fmt.Errorf("the certificate is that of %s, and %s answers", answer.TLS.PeerCertificates[0].Subject, text)
	}
	return who, err
}
