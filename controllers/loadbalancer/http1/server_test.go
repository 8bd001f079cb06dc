package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// serveOver serves one end of a connection, and returns the other. done is closed when that is over.
func serveOver(t *testing.T, s *Server, handle http.HandlerFunc) (client net.Conn, done chan struct{}) {
	t.Helper()
	s.Handler, s.MaxHead, s.HeadTimeout, s.IdleTimeout = handle, 1<<10, 10*time.Second, time.Minute
	client, own := net.Pipe()
	done = make(chan struct{})
	go func() { defer close(done); s.ServeConn(context.Background(), own, nil) }()
	t.Cleanup(func() { _ = client.Close(); <-done })
	return client, done
}

// talk sends text, and returns all that comes until the connection ends.
func talk(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	go func() { _, _ = io.WriteString(c, text) }()
	got, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.SplitSeq(string(got), "\r\n") {
		if !strings.HasPrefix(line, "Date: ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "|")
}

func TestAnswersAreFramed(t *testing.T) {
	const last = "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	const end = "HTTP/1.1 200 OK|Content-Length: 0|Connection: close||"
	for name, c := range map[string]struct {
		request string
		handle  http.HandlerFunc
		want    string
	}{
		"a length": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2")
			_, _ = io.WriteString(w, "ab")
		}, "HTTP/1.1 200 OK|Content-Length: 2||ab" + end},
		"chunks, and trailers": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, "ab")
			_, _ = io.WriteString(w, strings.Repeat("c", 17))
			w.Header().Set("X-Sum", "1")
			w.Header().Set(http.TrailerPrefix+"X-Late", "2\r\nX-Smuggled: 3")
		}, "HTTP/1.1 200 OK|Transfer-Encoding: chunked|Trailer: X-Sum||2|ab|11|ccccccccccccccccc|0|*||" + end},
		"HEAD with a length": {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2")
			_, _ = io.WriteString(w, "ab")
		}, "HTTP/1.1 200 OK|Content-Length: 2||" + end},
		"204": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2")
			w.WriteHeader(204)
			if _, err := io.WriteString(w, "ab"); err == nil {
				panic("a body was taken")
			}
		}, "HTTP/1.1 204 No Content||" + end},
		"304 with the length of what is not sent": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2")
			w.WriteHeader(304)
		}, "HTTP/1.1 304 Not Modified|Content-Length: 2||" + end},
		"interim answers": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(103)
			w.Header().Set("Content-Length", "0")
			w.WriteHeader(200)
		}, "HTTP/1.1 103 Early Hints||HTTP/1.1 200 OK|Content-Length: 0||" + end},
		"headers that would be two": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.Header()["A"] = []string{"b\r\nC: d"}
			w.Header()["E F"] = []string{"g"}
			w.WriteHeader(204)
		}, "HTTP/1.1 204 No Content|A: b  C: d||" + end},
		"HTTP/1.0 that stays": {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1")
			_, _ = io.WriteString(w, "a")
		}, "HTTP/1.1 200 OK|Content-Length: 1|Connection: keep-alive||a" + end},
		"HTTP/1.0 without a length": {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "a") },
			"HTTP/1.1 200 OK|Connection: close||a"},
		"less than was said": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3")
			_, _ = io.WriteString(w, "ab")
		}, "HTTP/1.1 200 OK|Content-Length: 3||ab"},
		"more than was said": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1")
			if _, err := io.WriteString(w, "ab"); !errors.Is(err, http.ErrContentLength) {
				panic(err)
			}
		}, "HTTP/1.1 200 OK|Content-Length: 1||"},
		"a handler that gives up": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "ab")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "HTTP/1.1 200 OK|Transfer-Encoding: chunked||2|ab|"},
		"a body that nobody read": {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", func(w http.ResponseWriter, r *http.Request) {}, "HTTP/1.1 200 OK|Content-Length: 0||"},
		"a body that is waited for": {"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			w.Header().Set("X-Got", fmt.Sprint(string(body), err))
			w.WriteHeader(204)
		}, "HTTP/1.1 100 Continue||HTTP/1.1 204 No Content|X-Got: hello<nil>||" + end},
		"chunks, and those trailers that were announced": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			w.Header().Set("X-Got", fmt.Sprintf("%s %v %v", body, err, r.Trailer))
			w.WriteHeader(204)
		}, "HTTP/1.1 204 No Content|X-Got: hello <nil> map[X-Sum:[1]]||" + end},
		"chunks with a line in their trailers that is none": {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nGET / HTTP/1.1\r\n\r\n", func(w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			w.Header().Set("X-Failed", fmt.Sprint(err != nil))
			w.WriteHeader(204)
		}, "HTTP/1.1 204 No Content|X-Failed: true||"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, _ := serveOver(t, &Server{}, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/last" {
					c.handle(w, r)
				}
			})
			got := talk(t, conn, c.request+last)
			if strings.Contains(c.want, "*") { // two trailers in any order
				got = strings.NewReplacer("|X-Sum: 1|X-Late: 2  X-Smuggled: 3", "|*", "|X-Late: 2  X-Smuggled: 3|X-Sum: 1", "|*").Replace(got)
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestTimesAreBounded: of a head, of a connection without a request, and of what is read after the last answer.
func TestTimesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want time.Duration
	}{
		"nothing":              {"", 10 * time.Second},
		"a part of a head":     {"GET / HTTP/1.1\r\n", 10 * time.Second},
		"a part of HTTP/2's":   {"PRI", 10 * time.Second},
		"idle after a request": {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", time.Minute},
		"a part of the second": {"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, done := serveOver(t, &Server{}, func(http.ResponseWriter, *http.Request) {})
			began := time.Now()
			go func() { _, _ = io.WriteString(conn, c.text) }()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			<-done
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: ended after %v, want %v", name, took, c.want)
			}
		})
	}
}

// TestAClientThatLeavesEndsItsRequest, and one that sends the next request early does not.
func TestAClientThatLeavesEndsItsRequest(t *testing.T) {
	for leaves, want := range map[bool]error{true: context.Canceled, false: nil} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 2)
			conn, done := serveOver(t, &Server{}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				select {
				case <-r.Context().Done():
				case <-time.After(10 * time.Second):
				}
				ended <- r.Context().Err()
			})
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab")
			time.Sleep(time.Second)
			if leaves {
				_ = conn.Close()
			} else {
				go func() { _, _ = io.Copy(io.Discard, conn) }()
				_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
			}
			<-done
			if err := <-ended; !errors.Is(err, want) {
				t.Errorf("the client leaves %t: the context says %v, want %v", leaves, err, want)
			}
			if len(ended) != 0 == leaves {
				t.Errorf("the client leaves %t: %d more requests", leaves, len(ended))
			}
		})
	}
}

// TestShutdown ends idle connections at once, those that are new after a while, and the others with their answers.
func TestShutdown(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want time.Duration
	}{
		"idle":          {"GET /quick HTTP/1.1\r\nHost: a\r\n\r\n", 0},
		"new":           {"", 4 * time.Second},
		"under way":     {"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", 19 * time.Second},
		"too long":      {"GET /slower HTTP/1.1\r\nHost: a\r\n\r\n", 30 * time.Second},
		"a part of one": {"GET ", 9 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Server{}
			conn, _ := serveOver(t, s, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(map[string]time.Duration{"/slow": 20 * time.Second, "/slower": 100 * time.Second}[r.URL.Path])
			})
			go func() { _, _ = io.WriteString(conn, c.text) }()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			time.Sleep(time.Second)
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := s.Shutdown(ctx)
			if took := time.Since(began).Round(50 * time.Millisecond); took != c.want || (err != nil) != (name == "too long") {
				t.Errorf("%s: %v after %v, want %v", name, err, took, c.want)
			}
		})
	}
}

func TestConnectionsByHTTP2AreHandedOver(t *testing.T) {
	got := make(chan string, 1)
	s := &Server{HTTP2: func(c net.Conn) {
		text := make([]byte, len(preface)+2)
		_, _ = io.ReadFull(c, text)
		got <- string(text)
	}}
	conn, _ := serveOver(t, s, func(http.ResponseWriter, *http.Request) { t.Error("a request by HTTP/1") })
	_, _ = io.WriteString(conn, preface+"\r\n")
	if text := <-got; text != preface+"\r\n" {
		t.Errorf("handed over with %q", text)
	}
}

func TestHijackedConnectionsAreSomebodyElses(t *testing.T) {
	s := &Server{}
	conn, done := serveOver(t, s, func(w http.ResponseWriter, r *http.Request) {
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrHijacked) {
			t.Errorf("an answer is written all the same: %v", err)
		}
		go func() {
			line, _ := buffered.ReadString('\n')
			_, _ = io.WriteString(c, "own "+line)
			_ = c.Close()
		}()
	})
	go func() { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\nhello\n") }()
	line, _ := bufio.NewReader(conn).ReadString('\n')
	if <-done; line != "own hello\n" {
		t.Errorf("got %q", line)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestIdleConnectionsKeepLittle of large requests and answers.
func TestIdleConnectionsKeepLittle(t *testing.T) {
	s := &Server{}
	conn, _ := serveOver(t, s, func(w http.ResponseWriter, r *http.Request) {
		for n := range 200 {
			w.Header()[fmt.Sprintf("X-%d", n)] = []string{"1"}
		}
		w.WriteHeader(http.StatusNoContent)
	})
	s.MaxHead = 16 << 10
	go func() {
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("A: "+strings.Repeat("b", 80)+"\r\n", 100))
		for n := range 200 {
			_, _ = fmt.Fprintf(conn, "X-%d: 1\r\n", n)
		}
		_, _ = io.WriteString(conn, "\r\n")
	}()
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || len(answer.Header) < 200 {
		t.Fatal(answer, err)
	}
	for { // until the answer is behind it
		s.mu.Lock()
		for c := range s.open {
			if c.state.Load() == idle {
				if c.w != nil || cap(c.head) > keptHead || len(c.header) > keptHeaders || len(c.answer.header) > keptHeaders {
					t.Errorf("kept: a writer %t, %d bytes of a head, %d and %d headers", c.w != nil, cap(c.head), len(c.header), len(c.answer.header))
				}
				s.mu.Unlock()
				return
			}
		}
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}
