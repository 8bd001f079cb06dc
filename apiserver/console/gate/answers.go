package gate

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answers answers what the API does not: it runs the plugin's own commands, with the user's own credential, so
// that a page and a terminal say the same.
type answers struct {
	Options
	runs *runs
}

// maxAnswers bounds how many commands are run at once for pages that read.
const maxAnswers = 4

// handler serves /local/: about, status, explain and dns read; runs are commands that change something.
func (a *answers) handler() http.Handler {
	mux, slots := http.NewServeMux(), make(chan struct{}, maxAnswers)
	reads := func(args func(r *http.Request) []string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				a.read(w, r, args(r))
			case <-r.Context().Done():
			}
		}
	}
	mux.HandleFunc("GET /local/about", func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, http.StatusOK, map[string]string{"version": a.Version, "server": a.API.Host, "namespace": a.Namespace})
	})
	mux.HandleFunc("GET /local/status", reads(func(*http.Request) []string { return []string{"status"} }))
	mux.HandleFunc("GET /local/explain", reads(func(r *http.Request) []string {
		args := []string{"explain", "--namespace=" + r.FormValue("namespace")}
		if wait := r.FormValue("wait"); wait != "" {
			args = append(args, "--member-timeout="+wait)
		}
		return append(args, "--", r.FormValue("object"))
	}))
	mux.HandleFunc("GET /local/dns", reads(func(r *http.Request) []string {
		return []string{"dns", "--namespace=" + r.FormValue("namespace"), "--", r.FormValue("object")}
	}))
	mux.HandleFunc("GET /local/runs", func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, http.StatusOK, a.runs.list()) })
	mux.HandleFunc("POST /local/runs", a.begin)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeRefusal(w, http.StatusNotFound, "there is nothing here")
	})
	return mux
}

// read runs a command that prints JSON and answers with that.
func (a *answers) read(w http.ResponseWriter, r *http.Request, args []string) {
	var out bytes.Buffer
	err := a.Run(r.Context(), &out, io.Discard, append([]string{args[0], "--output=json"}, args[1:]...))
	if err != nil {
		writeRefusal(w, codeOf(err), err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(out.Bytes()) // a client that is gone needs no answer
}

// codeOf returns the HTTP status of an error: the API's, if it is one of the API.
func codeOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code >= 400 {
		return int(status.Status().Code)
	}
	return http.StatusUnprocessableEntity
}
