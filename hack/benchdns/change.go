package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/miekg/dns"

	"federation/dnsprovider"
	"federation/dnsprovider/authoritative"
	"federation/dnsprovider/zonefile"
)

// asker asks for addresses over one UDP socket.
type asker struct{ conn *dns.Conn }

func newAsker(address string) (*asker, error) {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return &asker{&dns.Conn{Conn: conn}}, nil
}

// until asks for a name until the answer is the address alone.
func (a *asker) until(name, address string) error {
	for {
		if err := a.conn.WriteMsg(new(dns.Msg).SetQuestion(name, dns.TypeA)); err != nil {
			return err
		}
		reply, err := a.conn.ReadMsg()
		if err != nil {
			return err
		}
		if len(reply.Answer) == 1 {
			if got, ok := reply.Answer[0].(*dns.A); ok && got.A.String() == address {
				return nil
			}
		}
	}
}

// updates measures the median time from the sending of a dynamic update to the first changed answer.
func updates(address string, times int) (time.Duration, error) {
	ask, err := newAsker(address)
	if err != nil {
		return 0, err
	}
	defer ask.conn.Close()
	client := dns.Client{Timeout: 10 * time.Second} // of 200,000 names the first change may take seconds
	name, took := service(1)+"."+zoneName, make([]time.Duration, 0, times)
	for i := range times {
		to := fmt.Sprintf("192.0.2.%d", i%200+1)
		rr, err := dns.NewRR(name + " 15 IN A " + to)
		if err != nil {
			return 0, err
		}
		update := new(dns.Msg).SetUpdate(zoneName)
		update.RemoveRRset([]dns.RR{rr})
		update.Insert([]dns.RR{rr})
		begun := time.Now()
		reply, _, err := client.Exchange(update, address)
		if err != nil || reply.Rcode != dns.RcodeSuccess {
			return 0, fmt.Errorf("update: %v, %v", reply, err)
		}
		if err := ask.until(name, to); err != nil {
			return 0, err
		}
		took = append(took, time.Since(begun))
	}
	return median(took), nil
}

// inProcess measures the same of our server as the federation uses it, by calls: for one name, and
// from the call for n names, at most 10,000, to the answer of the last of them.
func inProcess(zoneFile string, times int) (one, many time.Duration, err error) {
	server, err := authoritative.New(authoritative.Options{Zone: zoneName, Listen: "127.0.0.1:0", RateLimit: -1})
	if err != nil {
		return 0, 0, err
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- server.Run(ctx) }()
	defer func() { stop(); <-done }()
	text, err := os.ReadFile(zoneFile)
	if err != nil {
		return 0, 0, err
	}
	zone, err := zonefile.Parse(bytes.NewReader(text), zoneName, zonefile.DefaultLimits)
	if err != nil {
		return 0, 0, err
	}
	sets := slices.DeleteFunc(zone.Sets, func(s dnsprovider.RRSet) bool { return s.Name == zoneName || s.Name == "ns."+zoneName })
	if err := server.Apply(ctx, zoneName, dnsprovider.Diff(nil, sets)); err != nil {
		return 0, 0, err
	}
	ask, err := newAsker(server.Addr().String())
	if err != nil {
		return 0, 0, err
	}
	defer ask.conn.Close()
	took := make([]time.Duration, 0, times)
	for i := range times {
		d, err := timeChange(server, ask, sets[:1], fmt.Sprintf("192.0.2.%d", i%200+1))
		if err != nil {
			return 0, 0, err
		}
		took = append(took, d)
	}
	many, err = timeChange(server, ask, sets[:min(10000, len(sets))], "192.0.2.201")
	return median(took), many, err
}

// timeChange makes all sets the address alone, in place, and waits for the last one.
func timeChange(server *authoritative.Server, ask *asker, sets []dnsprovider.RRSet, address string) (time.Duration, error) {
	var changes dnsprovider.ChangeSet
	for i, old := range sets {
		set, err := dnsprovider.New(old.Name, dnsprovider.A, 15, address)
		if err != nil {
			return 0, err
		}
		changes = append(changes, dnsprovider.Step{Name: old.Name, Old: []dnsprovider.RRSet{old}, New: []dnsprovider.RRSet{set}})
		sets[i] = set
	}
	begun := time.Now()
	if err := server.Apply(context.Background(), zoneName, changes); err != nil {
		return 0, err
	}
	err := ask.until(changes[len(changes)-1].Name, address)
	return time.Since(begun), err
}

// delays asks one question after the other, with a pause, for a while.
func delays(address string, packed [][]byte, lasting time.Duration) (p50, p99 time.Duration, err error) {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	var took []time.Duration
	buf := make([]byte, 2048)
	for end := time.Now().Add(lasting); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		begun := time.Now()
		_ = conn.SetDeadline(begun.Add(time.Second))
		if _, err := conn.Write(packed[len(took)%len(packed)]); err != nil {
			return 0, 0, err
		}
		if _, err := conn.Read(buf); err != nil {
			return 0, 0, err
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], nil
}

func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}
