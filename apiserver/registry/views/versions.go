package views

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
)

const (
	// remember is how long a version can be watched from.
	remember = 5 * time.Minute
	// maxRemembered is the maximum of members' versions kept in total; the oldest lists are forgotten first.
	maxRemembered = 1 << 17
)

// versions assigns numbers to vectors: the version of each member, by cluster. The numbers grow, even from one process
// to the next, and no two processes assign the same: another one's number is unknown, and the client lists again.
type versions struct {
	now func() time.Time
	// process is in the low bits of each number.
	process int64

	mu    sync.Mutex
	last  int64
	given []given // oldest first
	held  int     // members' versions in given
}

type given struct {
	number int64
	at     time.Time
	vector map[string]string
}

// processBits bits of a number identify its process; the others are microseconds.
const processBits = 10

func newVersions(now func() time.Time, process int64) *versions {
	return &versions{now: now, process: process & (1<<processBits - 1)}
}

// note stores a vector, which must not be changed, and returns its number.
func (v *versions) note(vector map[string]string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	v.forget(now)
	number := now.UnixMicro()<<processBits | v.process
	if number <= v.last {
		number = v.last + 1<<processBits
	}
	v.last = number
	v.given = append(v.given, given{number, now, vector})
	v.held += len(vector) + 1
	if len(v.given) == 1 {
		time.AfterFunc(remember, v.forgetLater)
	}
	return strconv.FormatInt(number, 10)
}

// keptFor is how long each member keeps its versions at least: etcd is compacted every five minutes. A member that says sooner that one has
// expired errs or lies: no client lists all members again for that.
const keptFor = time.Minute

// hasExpired reports whether a member's error says that a version of that time has expired, and may be right.
func (v *versions) hasExpired(err error, at time.Time) bool {
	return (errors.IsResourceExpired(err) || errors.IsGone(err)) && v.time().Sub(at) >= keptFor
}

func (v *versions) time() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now()
}

// givenAt returns when a number was given; the zero time for what is none.
func givenAt(version string) time.Time {
	number, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(number >> processBits)
}

// vector returns the vector of a number; false if it is unknown or expired.
func (v *versions) vector(version string) (map[string]string, bool) {
	number, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return nil, false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget(v.now())
	i, found := slices.BinarySearchFunc(v.given, number, func(g given, n int64) int { return cmp.Compare(g.number, n) })
	if !found {
		return nil, false
	}
	return v.given[i].vector, true
}

// forgetLater drops expired vectors until none is left.
func (v *versions) forgetLater() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.forget(v.now()); len(v.given) > 0 {
		time.AfterFunc(remember, v.forgetLater)
	}
}

// forget drops vectors that are expired or too many. When the last is dropped, no memory is held.
func (v *versions) forget(now time.Time) {
	n := 0
	for n < len(v.given) && (now.Sub(v.given[n].at) > remember || v.held > maxRemembered) {
		v.held -= len(v.given[n].vector) + 1
		n++
	}
	clear(v.given[:n])
	if v.given = v.given[n:]; len(v.given) == 0 {
		v.given = nil
	}
}
