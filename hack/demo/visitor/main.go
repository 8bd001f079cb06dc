// Command visitor is a client of a global name: it sends requests at a steady rate to the addresses that DNS answers,
// each over a connection of its own, and tells by whom they were answered and how many failed. As ordinary clients do,
// it keeps an answer for its time to live, takes one of its addresses at random, and tries no second one.
//
//	visitor --dns 10.64.255.254:53 --name web.default.fed.svc.example.test
//
// With --fresh it looks the name up each time, so that what it sees does not depend on when it looked last.
// Each line that it reads from standard input begins a new line of the table that it prints when the input ends.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"github.com/spf13/pflag"
)

func main() {
	v := &visitor{}
	pflag.StringVar(&v.server, "dns", "", "`ADDRESS` of the DNS server")
	pflag.StringVar(&v.name, "name", "", "global name to visit")
	pflag.BoolVar(&v.fresh, "fresh", false, "look the name up for each request, and keep no answer")
	rate := pflag.Int("rate", 100, "requests a second")
	patience := pflag.Duration("patience", time.Second, "how long a request may take, looking up, connecting and answering together")
	pflag.Parse()
	v.client = &http.Client{Timeout: *patience, Transport: &http.Transport{DisableKeepAlives: true, DialContext: v.dial}}

	phases := make(chan string)
	go func() {
		defer close(phases)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			phases <- lines.Text()
		}
	}()
	tick := time.NewTicker(time.Second / time.Duration(*rate))
	var report report
	var requests sync.WaitGroup
	for {
		select {
		case phase, more := <-phases:
			if !more {
				requests.Wait()
				fmt.Print(report.String())
				return
			}
			report.begin(phase, time.Now())
		case <-tick.C:
			if at := report.current(); at != nil {
				requests.Go(func() { begun := time.Now(); who, err := v.visit(); report.add(at, begun, who, err) })
			}
		}
	}
}

// visitor asks one name.
type visitor struct {
	server, name string
	fresh        bool
	client       *http.Client

	mu        sync.Mutex
	addresses []string
	expire    time.Time
}

// visit is one request; who is the cluster of the pod that answered.
func (v *visitor) visit() (who string, err error) {
	answer, err := v.client.Get("http://" + v.name + "/")
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }() // it is read
	if answer.StatusCode != http.StatusOK {
		return "", errors.New(answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1024))
	if err != nil {
		return "", err
	}
	_, node, ok := strings.Cut(strings.TrimSpace(string(text)), " on ")
	if !ok {
		return "", fmt.Errorf("answer %q", text)
	}
	cluster, _, _ := strings.Cut(node, "-node-")
	return cluster, nil
}

func (v *visitor) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	addresses, err := v.lookUp(ctx)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(addresses[rand.IntN(len(addresses))], "80"))
}

// lookUp asks the server when the last answer's time to live is over, or each time.
func (v *visitor) lookUp(ctx context.Context) ([]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.fresh && time.Now().Before(v.expire) {
		return v.addresses, nil
	}
	answer, _, err := new(dns.Client).ExchangeContext(ctx, new(dns.Msg).SetQuestion(dns.Fqdn(v.name), dns.TypeA), v.server)
	if err != nil {
		return nil, err
	}
	var addresses []string
	for _, r := range answer.Answer {
		if a, ok := r.(*dns.A); ok {
			addresses = append(addresses, a.A.String())
			v.expire = time.Now().Add(time.Duration(a.Hdr.Ttl) * time.Second)
		}
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%s has no address: %s", v.name, dns.RcodeToString[answer.Rcode])
	}
	v.addresses = addresses
	return addresses, nil
}
