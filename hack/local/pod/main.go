// Command pod is what runs in the containers of real nodes, as one static program:
//
//	pod pause          waits for SIGTERM: what holds a pod's namespaces together
//	pod web            answers HTTP at port 8080 with "POD on NODE", of the environment's POD and NODE
//	pod get URL        prints what is answered at a URL, within two seconds, as a client in a pod
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) == 3 && os.Args[1] == "get" {
		if err := get(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "pod: error:", err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) != 2 || os.Args[1] != "pause" && os.Args[1] != "web" {
		fmt.Fprintln(os.Stderr, "pod: error: want pause, web or get URL")
		os.Exit(2)
	}
	if os.Args[1] == "web" {
		server := &http.Server{Addr: ":8080", Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 10 * time.Second}
		go func() {
			fmt.Fprintln(os.Stderr, server.ListenAndServe())
			os.Exit(1)
		}()
	}
	<-ctx.Done()
}

func answer(w http.ResponseWriter, _ *http.Request) {
	_, _ = fmt.Fprintf(w, "%s on %s\n", os.Getenv("POD"), os.Getenv("NODE"))
}

func get(url string) error {
	answer, err := (&http.Client{Timeout: 2 * time.Second}).Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it is read
	_, err = io.Copy(os.Stdout, io.LimitReader(answer.Body, 1024))
	return err
}
