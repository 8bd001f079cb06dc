// Command pod is what runs in the containers of real nodes, as one static program:
//
//	pod pause          waits for SIGTERM: what holds a pod's namespaces together
//	pod web            answers HTTP at port 8080 with "POD on NODE", of the environment's POD and NODE
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 || os.Args[1] != "pause" && os.Args[1] != "web" {
		fmt.Fprintln(os.Stderr, "pod: error: want pause or web")
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
