package limits

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"federation/clusterregistry/limits/weight"
)

// Limits of one member, in bytes. Those that are zero take the default.
type Limits struct {
	// Response is the most that one answer may have that is not a watch, and Open the most that all of those being read at the same time may
	// have together: 128 MiB and 256 MiB.
	Response, Open int64
	// Burst is what is read of all answers and watches without a pause: 64 MiB. After that they are read at Rate bytes a second: 16 MiB.
	// A member that has more to say for pacedFor is over the limit.
	Burst, Rate int64
	// Held is the most that is kept of a member's objects: 512 MiB.
	Held int64
	// Unweighed has answers cost their length: they are passed on without decoding them, or who decodes one calls Weigh before. Errors are weighed.
	Unweighed bool
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Response: cmp.Or(l.Response, 128<<20), Open: cmp.Or(l.Open, 256<<20), Burst: cmp.Or(l.Burst, 64<<20), Rate: cmp.Or(l.Rate, 16<<20),
		Held: cmp.Or(l.Held, 512<<20), Unweighed: l.Unweighed,
	}
}

// pacedFor is how long a member may send as fast as it is read at Rate.
const pacedFor = time.Minute

// ExceededError says which limit a member went over.
type ExceededError struct {
	// What was limited, and to how many bytes; 0: What says it all.
	What  string
	Limit int64
}

// Error implements error.
func (e *ExceededError) Error() string {
	if e.Limit == 0 {
		return "the cluster sends more than the federation takes: " + e.What
	}
	return fmt.Sprintf("the cluster sends more than the federation takes: %s is limited to %d MiB", e.What, e.Limit>>20)
}

// Meter counts what one member sends. Its methods may be called from any goroutine.
type Meter struct {
	limits   Limits
	exceeded func(reason string)
	now      func() time.Time
	held     atomic.Int64
	open     atomic.Int64 // bytes of answers that are being read
	cutOff   atomic.Pointer[ExceededError]

	mu    sync.Mutex
	spent float64 // of the burst, in bytes; it shrinks with Rate
	at    time.Time
	paced time.Time        // since when more than the burst is spent; zero: it is not
	lists map[string]*list // that are being read in pages, by path, selectors and what is accepted
}

// New makes a Meter. exceeded is called once, when the member goes over a limit; it must not wait.
func New(l Limits, exceeded func(reason string)) *Meter {
	return &Meter{limits: l.withDefaults(), exceeded: exceeded, now: time.Now, at: time.Now(), lists: map[string]*list{}}
}

// read counts n bytes that have been read, and waits for as long as they were sent too fast.
func (m *Meter) read(n int64) error {
	if over := m.cutOff.Load(); over != nil {
		return over
	}
	wait, paced := m.spend(n)
	if paced > pacedFor {
		return m.exceed(fmt.Sprintf("what it sends in a second, for %s,", pacedFor), m.limits.Rate)
	}
	time.Sleep(wait)
	return nil
}

// spend takes n bytes from the burst. It returns how long to wait until they are within Rate, and for how long that has been so.
func (m *Meter) spend(n int64) (wait, paced time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.spent = max(0, m.spent-now.Sub(m.at).Seconds()*float64(m.limits.Rate)) + float64(n)
	m.at = now
	over := m.spent - float64(m.limits.Burst)
	switch {
	case over <= 0:
		m.paced = time.Time{}
		return 0, 0
	case m.paced.IsZero():
		m.paced = now
	}
	return time.Duration(over / float64(m.limits.Rate) * float64(time.Second)), now.Sub(m.paced)
}

func (m *Meter) exceed(what string, limit int64) error {
	over := &ExceededError{what, limit}
	if m.cutOff.CompareAndSwap(nil, over) {
		m.exceeded(over.Error())
	}
	return over
}

// overhead is what an object that is kept costs beside its data.
const overhead = 512

// Hold counts an object of the member, of size bytes, for as long as anybody has it. A nil Meter counts nothing.
func Hold[T any](m *Meter, object *T, size int) {
	if m == nil {
		return
	}
	n := int64(size + overhead)
	runtime.AddCleanup(object, func(n int64) { m.held.Add(-n) }, n)
	if m.held.Add(n) > m.limits.Held {
		_ = m.exceed("all that is kept of its objects", m.limits.Held) // who holds the object hears of it as all others do
	}
}

// Transport returns a round tripper whose answers are counted. It asks for compressed ones, and decompresses them. That of a nil Meter counts
// nothing.
func (m *Meter) Transport(t *http.Transport) http.RoundTripper {
	if m == nil {
		return t
	}
	t.DisableCompression = true
	return m.Over(t)
}

// Over is Transport of one that several meters share, and that decompresses nothing itself (DisableCompression).
func (m *Meter) Over(rt http.RoundTripper) http.RoundTripper { return &counted{rt, m} }

// EachAnswer returns what bounds each answer of a transport by itself, in bytes, for who reads of members now and then.
func EachAnswer(most int64) func(http.RoundTripper) http.RoundTripper {
	return func(rt http.RoundTripper) http.RoundTripper { return eachAnswer{rt, most} }
}

type eachAnswer struct {
	http.RoundTripper
	most int64
}

// RoundTrip implements http.RoundTripper.
func (e eachAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	m := New(Limits{Response: e.most, Open: e.most, Burst: 2 * e.most}, func(string) {})
	return m.Over(e.RoundTripper).RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport.
func (e eachAnswer) WrappedRoundTripper() http.RoundTripper { return e.RoundTripper }

// maxEvent is how many bytes one event of a watch may have. Clients bound events of protobuf, and read those of JSON to their end.
const maxEvent = 16 << 20

// errorText is how much is read of an answer that is an error, in bytes. The rest of it says nothing more, and a member that refuses everything at length
// would be read at length for each object.
const errorText = 64 << 10

// maxErrorCost is how many bytes such an answer may cost.
const maxErrorCost = 1 << 20

var errLongError = errors.New("an error that takes too much to decode")

type counted struct {
	http.RoundTripper
	meter *Meter
}

// RoundTrip implements http.RoundTripper.
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if over := c.meter.cutOff.Load(); over != nil {
		return nil, over
	}
	response, err := c.RoundTripper.RoundTrip(wantsCompressed(r))
	if err != nil {
		return nil, err
	}
	response.Request = r
	c.meter.decompress(response)
	if response.StatusCode >= http.StatusMultipleChoices {
		response.Body = &struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, errorText), response.Body}
	}
	var query url.Values // of what reads: nothing else is watched, or comes in pages
	if r.Method == http.MethodGet {
		query = r.URL.Query()
	}
	watch := query.Get("watch") == "true" || query.Get("watch") == "1"
	counted := &body{ReadCloser: response.Body, meter: c.meter, watch: watch && response.StatusCode == http.StatusOK, failed: response.StatusCode >= http.StatusMultipleChoices}
	if accepted := strings.Join(r.Header.Values("Accept"), ","); counted.failed || !c.meter.limits.Unweighed {
		// as dynamic clients say it
		counted.weigher = weigherFor(response.Header.Get("Content-Type"), accepted, accepted != k8sruntime.ContentTypeJSON, counted.watch, counted.failed)
	}
	if r.Method == http.MethodGet && !watch {
		counted.list = c.meter.listOf(r, query)
	}
	response.Body = counted
	return response, nil
}

// weigherFor returns what weighs an answer, by what it says that it is: clients decode it as that. nil: nobody decodes it.
func weigherFor(says, accepted string, typed, watch, failed bool) weight.Weigher {
	decodes := strings.Contains(accepted, "json") || strings.Contains(accepted, "protobuf")
	media, _, err := mime.ParseMediaType(says)
	switch {
	case !decodes:
		return nil
	case err == nil && media == k8sruntime.ContentTypeProtobuf:
		return weight.NewProtobuf(watch)
	case err == nil && media == k8sruntime.ContentTypeJSON:
		return weight.NewJSON(typed)
	case err != nil, strings.HasSuffix(media, "yaml"), strings.HasSuffix(media, "cbor"), media != "text/plain" && !failed:
		// Clients would take it for what they like best, or for what they did not ask for.
		return weight.Refuse(fmt.Sprintf("its content type is %q", says))
	}
	return nil
}

// Weigh returns what it costs to decode an answer into types of Go, in bytes. An error is what nobody may decode.
func Weigh(says string, answer []byte) (int64, error) {
	w := weigherFor(says, k8sruntime.ContentTypeJSON, true, false, false)
	if w == nil {
		return int64(len(answer)), nil
	}
	cost, _, err := w.Add(answer)
	return cost, err
}

// WrappedRoundTripper lets client-go look through to the transport.
func (c *counted) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

// body counts what is read of an answer.
type body struct {
	io.ReadCloser
	meter   *Meter
	watch   bool           // it has no end
	failed  bool           // it is an error
	list    *list          // that it is a page of; nil for the first one
	size    atomic.Int64   // bytes so far that count as open
	weigher weight.Weigher // nil: each byte costs one
	cost    int64          // so far

	closed atomic.Bool // perhaps while it is being read
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	cost, event, refused := b.weigh(p[:n])
	if refused == nil {
		refused = b.count(cost, event)
	}
	if refused == nil {
		refused = b.meter.read(cost)
	}
	if err != nil || refused != nil || b.closed.Load() {
		b.forget()
	}
	var over *ExceededError
	if refused != nil && b.failed && !errors.As(refused, &over) {
		return 0, io.EOF // its status is enough
	}
	if refused != nil {
		return 0, refused
	}
	return n, err
}

// count counts what has been read against the limits.
func (b *body) count(cost, event int64) error {
	if b.watch {
		if event > maxEvent {
			return b.meter.exceed("one event of a watch", maxEvent)
		}
		return nil
	}
	switch open := b.meter.open.Add(cost); {
	case b.size.Add(cost) > b.meter.limits.Response:
		return b.meter.exceed("one answer", b.meter.limits.Response)
	case open > b.meter.limits.Open:
		return b.meter.exceed("all that it answers at the same time", b.meter.limits.Open)
	case b.list != nil && b.list.Add(cost) > b.meter.limits.Held:
		return b.meter.exceed("all pages of one list", b.meter.limits.Held)
	case b.failed && b.cost > maxErrorCost:
		return errLongError
	}
	return nil
}

// list is how much the pages of a list cost after the first.
type list struct {
	atomic.Int64
	last time.Time // that a page was asked for
}

// listIdle is how long nobody asks for a page of a list that is over.
const listIdle = 10 * time.Second

// listOf returns the list that a request is to continue; nil for one that begins. Clients keep all pages until the last.
func (m *Meter) listOf(r *http.Request, query url.Values) *list {
	key := strings.Join([]string{r.URL.Path, query.Get("labelSelector"), query.Get("fieldSelector"), r.Header.Get("Accept")}, "\n")
	m.mu.Lock()
	defer m.mu.Unlock()
	l, now := m.lists[key], m.now()
	if l != nil && now.Sub(l.last) > listIdle {
		delete(m.lists, key)
		l = nil
	}
	if query.Get("continue") == "" {
		return nil
	}
	if l == nil {
		l = &list{}
		m.lists[key] = l
	}
	l.last = now
	return l
}

// weigh returns what the next bytes cost, and what the most expensive event does of those that they belong to. refused: nobody may decode them.
func (b *body) weigh(part []byte) (cost, event int64, refused error) {
	if b.weigher == nil {
		cost = int64(len(part))
		b.cost += cost
		return cost, 0, nil
	}
	total, event, refused := b.weigher.Add(part)
	cost, b.cost = total-b.cost, total
	return cost, event, refused
}

// Costed is the body of an answer that a Meter counts.
type Costed interface {
	// Cost returns what has been read so far costs, in bytes.
	Cost() int64
}

// Cost implements Costed.
func (b *body) Cost() int64 { return b.cost }

// Close implements io.Closer.
func (b *body) Close() error {
	b.closed.Store(true)
	b.forget()
	return b.ReadCloser.Close()
}

// forget stops counting what was read of an answer among those that are open.
func (b *body) forget() { b.meter.open.Add(-b.size.Swap(0)) }
