// Command pod is what runs in the containers of real nodes, as one static program:
//
//	pod pause          waits for SIGTERM: what holds a pod's namespaces together
//	pod web            answers HTTP at port 8080 with "POD on NODE", of the environment's POD and NODE; if NEXT there names another Service of
//	                   the namespace, it asks that one, too, and adds its answer
//	pod get URL        prints what is answered at a URL, within two seconds, as a client in a pod
//	pod visit URL      asks a URL 20 times a second, each time over a new connection, waits five seconds, and prints for each when it asked (seconds
//	                   of Unix time), and "ok" or what went wrong
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch {
	case len(os.Args) == 3 && os.Args[1] == "get":
		text, err := get(os.Args[2], timeout)
		fmt.Print(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, "pod: error:", err)
			os.Exit(1)
		}
		return
	case len(os.Args) == 3 && os.Args[1] == "visit":
		visit(ctx, os.Args[2])
		return
	case len(os.Args) != 2 || os.Args[1] != "pause" && os.Args[1] != "web":
		fmt.Fprintln(os.Stderr, "pod: error: want pause, web, get URL or visit URL")
		os.Exit(2)
	case os.Args[1] == "web":
		server := &http.Server{Addr: ":8080", Handler: http.HandlerFunc(serveWeb), ReadHeaderTimeout: 10 * time.Second}
		go func() {
			fmt.Fprintln(os.Stderr, server.ListenAndServe())
			os.Exit(1)
		}()
	}
	<-ctx.Done()
}

func serveWeb(w http.ResponseWriter, _ *http.Request) {
	text := fmt.Sprintf("%s on %s\n", os.Getenv("POD"), os.Getenv("NODE"))
	if next := os.Getenv("NEXT"); next != "" {
		of := strings.ToUpper(strings.ReplaceAll(next, "-", "_")) // as the kubelet calls what it tells pods of Services
		more, err := get("http://"+net.JoinHostPort(os.Getenv(of+"_SERVICE_HOST"), os.Getenv(of+"_SERVICE_PORT")), timeout)
		if err != nil {
			http.Error(w, text+more+err.Error(), http.StatusBadGateway)
			return
		}
		text += more
	}
	_, _ = io.WriteString(w, text)
}

// timeout is how long get and web wait for an answer, visitTimeout how long visit does.
const timeout, visitTimeout = 2 * time.Second, 5 * time.Second

// get asks over a connection of its own.
func get(url string, atMost time.Duration) (text string, err error) {
	client := &http.Client{Timeout: atMost, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }() // it is read
	all, err := io.ReadAll(io.LimitReader(answer.Body, 4096))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return string(all), err
}

func visit(ctx context.Context, url string) {
	tick := time.NewTicker(time.Second / 20)
	for ctx.Err() == nil {
		<-tick.C
		go func() {
			asked, said := time.Now(), "ok"
			if text, err := get(url, visitTimeout); err != nil {
				said = strings.Join(strings.Fields(text+" "+err.Error()), " ")
			}
			fmt.Printf("%d.%03d %s\n", asked.Unix(), asked.Nanosecond()/1e6, said)
		}()
	}
}
