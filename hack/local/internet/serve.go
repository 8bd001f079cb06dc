package main

import (
	"fmt"
	"net"
	"time"

	"federation/hack/forward"
	"federation/hack/local/uplink"
)

// serveDNS forwards queries inside to the server outside, and its answers back. The caller's thread makes the listeners, which
// belong to its namespace; the goroutines that dial are on threads outside.
func serveDNS(server string) error {
	if server == "" {
		return nil
	}
	inside := net.JoinHostPort(uplink.InternetAddress, "53")
	udp, err := net.ListenPacket("udp4", inside)
	if err != nil {
		return fmt.Errorf("DNS: %w", err)
	}
	tcp, err := net.Listen("tcp4", inside)
	if err != nil {
		return fmt.Errorf("DNS: %w", err)
	}
	go forwardDatagrams(udp, server)
	go forward.Serve(tcp, server)
	return nil
}

// serveAPI forwards connections inside to the API server outside.
func serveAPI(server string) error {
	if server == "" {
		return nil
	}
	l, err := net.Listen("tcp4", net.JoinHostPort(uplink.InternetAddress, "443"))
	if err != nil {
		return fmt.Errorf("API: %w", err)
	}
	go forward.Serve(l, server)
	return nil
}

// forwardDatagrams forwards each datagram, and the first answer to it.
func forwardDatagrams(inside net.PacketConn, server string) {
	for {
		query := make([]byte, 4096)
		n, client, err := inside.ReadFrom(query)
		if err != nil {
			return
		}
		go func() {
			out, err := net.DialTimeout("udp4", server, time.Second)
			if err != nil {
				return // as a lost packet
			}
			defer out.Close()
			_ = out.SetDeadline(time.Now().Add(2 * time.Second))
			if _, err := out.Write(query[:n]); err != nil {
				return
			}
			answer := make([]byte, 65535)
			if n, err = out.Read(answer); err == nil {
				_, _ = inside.WriteTo(answer[:n], client)
			}
		}()
	}
}
