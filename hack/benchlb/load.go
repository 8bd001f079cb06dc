package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// generator sends requests over a number of connections, each one after the other.
type generator struct {
	load
	config      *tls.Config
	connections int
	open        []*connection
}

// connection is one of the load's.
type connection struct {
	net.Conn
	r *bufio.Reader
}

// result is what a run has seen.
type result struct {
	requests, failed int
	took             time.Duration
	times            []time.Duration
}

func (r *result) quantile(q float64) time.Duration {
	if len(r.times) == 0 {
		return 0
	}
	slices.Sort(r.times)
	return r.times[int(q*float64(len(r.times)-1))]
}

func newGenerator(l load, roots []byte, connections int) *generator {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(roots)
	return &generator{load: l, connections: connections, open: make([]*connection, connections), config: &tls.Config{RootCAs: pool, ServerName: host, SessionTicketsDisabled: true, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, CurvePreferences: l.exchanges}}
}

func (g *generator) dial() (*connection, error) {
	address := plainAddress
	if g.tls {
		address = tlsAddress
	}
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	if g.tls {
		c = tls.Client(c, g.config)
	}
	return newConnection(c), nil
}

func newConnection(c net.Conn) *connection { return &connection{c, bufio.NewReader(c)} }

// requestOf is a request for a path of a host.
func requestOf(host, path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: benchlb\r\nAccept: */*\r\n\r\n"
}

var request = requestOf(host, "/some/path?with=query")

// ask sends the request of the load and reads its answer.
func (c *connection) ask() error {
	status, _, err := c.send(request)
	if err == nil && status != http.StatusOK {
		return fmt.Errorf("answer %d", status)
	}
	return err
}

// get asks for a path of a host. It returns the status of the answer, and the cluster that it is from.
func (c *connection) get(host, path string) (status int, cluster string, err error) {
	return c.send(requestOf(host, path))
}

// send sends a request and reads its answer.
func (c *connection) send(request string) (status int, cluster string, err error) {
	_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // fails only for what is closed
	if _, err := io.WriteString(c, request); err != nil {
		return 0, "", err
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return 0, "", err
	}
	if _, err := fmt.Sscanf(line, "HTTP/1.1 %d ", &status); err != nil {
		return 0, "", fmt.Errorf("answer %q", line)
	}
	length := 0
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return 0, "", err
		}
		if len(line) == 2 {
			break
		}
		name, value, _ := bytes.Cut(line[:len(line)-2], []byte(": "))
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, "", err
			}
		case bytes.EqualFold(name, []byte(clusterHeader)):
			cluster = string(value)
		}
	}
	_, err = c.r.Discard(length)
	return status, cluster, err
}

// waitReady waits until a request is answered.
func (g *generator) waitReady() (err error) {
	for range 500 {
		var c *connection
		if c, err = g.dial(); err == nil {
			err = c.ask()
			_ = c.Close() // a trial
			if err == nil {
				return nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// run sends requests for a time: as many as are answered, or at a rate.
func (g *generator) run(length time.Duration, rate float64) *result {
	stop := make(chan struct{})
	time.AfterFunc(length, func() { close(stop) })
	return g.runUntil(stop, rate)
}

// runUntil sends requests until stop is closed.
func (g *generator) runUntil(stop chan struct{}, rate float64) *result {
	ended := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	all := &result{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	began := time.Now()
	for n := range g.connections {
		wait.Go(func() {
			own := result{}
			for i := 0; !ended(); i++ {
				from := time.Now()
				if rate > 0 { // late requests count from when they were due
					from = began.Add(time.Duration(float64(i*g.connections+n) / rate * float64(time.Second)))
					time.Sleep(time.Until(from))
				}
				if err := g.once(n); err != nil {
					own.failed++
					continue
				}
				own.requests++
				own.times = append(own.times, time.Since(from))
			}
			mu.Lock()
			defer mu.Unlock()
			all.requests += own.requests
			all.failed += own.failed
			all.times = append(all.times, own.times...)
		})
	}
	wait.Wait()
	all.took = time.Since(began)
	return all
}

// once sends one request over the n-th connection.
func (g *generator) once(n int) (err error) {
	if g.open[n] == nil {
		if g.open[n], err = g.dial(); err != nil {
			return err
		}
	}
	if err = g.open[n].ask(); err != nil || !g.kept {
		_ = g.open[n].Close() // the next one has a new connection
		g.open[n] = nil
	}
	return err
}

func (g *generator) close() {
	for _, c := range g.open {
		if c != nil {
			_ = c.Close() // the run is over
		}
	}
}
