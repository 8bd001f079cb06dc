package authoritative

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
)

// limiter bounds the answers per second over UDP to one network, so that nobody can flood a network through us with a
// forged source address. It remembers a fixed number of networks; those with the fewest answers are forgotten first.
type limiter struct {
	// perSecond is what a network may get of each class of answers.
	perSecond uint64
	seed      uint64
	sets      [limiterSets]limiterSet
}

const (
	limiterSets = 4096
	// A count is one number: whose it is, in which second, and how many answers.
	countBits, secondBits = 28, 16
	countMask             = 1<<countBits - 1
	secondMask            = 1<<secondBits - 1
)

// MaxRateLimit is the largest limit that can be counted.
const MaxRateLimit = countMask

// limiterSet is one line of the processor's cache with the counts of eight networks.
type limiterSet [8]atomic.Uint64

// answerClass separates the limits: a flood of names that do not exist must not hinder clients that ask for names that
// do.
type answerClass uint64

const (
	classAnswer answerClass = iota
	classNegative
	classError
)

func newLimiter(perSecond int) *limiter {
	return &limiter{perSecond: uint64(perSecond), seed: rand.Uint64()}
}

// exceeded reports whether an answer to a client would be too much, and counts it, as cost answers, if not. second is
// a time in seconds.
func (l *limiter) exceeded(client netip.Addr, class answerClass, second uint32, cost uint64) bool {
	hash := mixBits(clientNetwork(client)<<2 ^ uint64(class) ^ l.seed)
	owner, now := hash>>(countBits+secondBits), uint64(second)&secondMask
	slot, value := l.sets[hash%limiterSets].find(owner, now)
	count := value & countMask
	if value>>countBits != owner<<secondBits|now {
		count = 0
	}
	if cost = min(cost, l.perSecond); count+cost > l.perSecond {
		return true
	}
	// Where another thread counts at the same time, one of the two answers is free.
	slot.CompareAndSwap(value, (owner<<secondBits|now)<<countBits|(count+cost))
	return false
}

// find returns where the count of an owner is kept in this second, and its value. A new one takes the place of an older
// second's, or else of the smallest.
func (s *limiterSet) find(owner, now uint64) (slot *atomic.Uint64, value uint64) {
	least := ^uint64(0)
	for i := range s {
		v := s[i].Load()
		if v>>(countBits+secondBits) == owner {
			return &s[i], v
		}
		count := v & countMask
		if v>>countBits&secondMask != now {
			count = 0
		}
		if count < least {
			slot, value, least = &s[i], v, count
		}
	}
	return slot, value
}

// clientNetwork returns the part of an address that is counted as one: /24 of IPv4, /56 of IPv6.
func clientNetwork(client netip.Addr) uint64 {
	if client.Is4() {
		a := client.As4()
		return uint64(binary.BigEndian.Uint32(a[:]) >> 8)
	}
	a := client.As16()
	return binary.BigEndian.Uint64(a[:]) >> 8
}

// mixBits spreads a number over all bits (the finalizer of MurmurHash3).
func mixBits(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
