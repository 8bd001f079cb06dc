package nettest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"
)

// AskOnce asks a UDP server over a new flow, and over another if nothing comes back, as resolvers do: an answer on its
// way is lost when its server is removed from the Service.
func (h *Host) AskOnce(to netip.AddrPort) (got Answer, err error) {
	for range 2 {
		var c net.Conn
		if err = h.Do(func() (err error) { c, err = net.Dial("udp", to.String()); return err }); err != nil {
			return got, err
		}
		got, err = (&Flow{c}).Ask()
		c.Close()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return got, err
}

// DialWithin opens a TCP connection, unless that takes longer.
func (h *Host) DialWithin(to netip.AddrPort, limit time.Duration) (c net.Conn, err error) {
	err = h.Do(func() (err error) { c, err = net.DialTimeout("tcp", to.String(), limit); return err })
	return c, err
}

// GetWithin asks an HTTP server over a new connection, and gives up after a time.
func (h *Host) GetWithin(to netip.AddrPort, limit time.Duration) (Answer, error) {
	client := &http.Client{Timeout: limit, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return h.DialWithin(to, limit) },
	}}
	defer client.CloseIdleConnections()
	return get(client, to)
}
