// Package weight says what an answer in protobuf or JSON costs to decode, from its bytes as they come by: before anything is decoded, and without holding
// them. A list of empty Pods has two bytes for each, and takes a kilobyte for each.
//
// The cost is in bytes as they are sent: Times as many in memory cost one. What honest servers send takes less, and costs its length.
package weight

// Times is how many bytes one byte of an answer may become in memory, and still cost no more than one.
const Times = 8

// Weigher weighs an answer.
type Weigher interface {
	// Add takes the next bytes. It returns what everything costs so far, and what the most expensive event does of those that these bytes belong to.
	Add(part []byte) (total, event int64)
}

// Unknown returns a Weigher of what may be anything.
func Unknown() Weigher { return &Protobuf{state: unclear} }

// cost is what something costs.
type cost struct{ sent, takes int64 }

func (c *cost) add(sent, takes int64) { c.sent, c.takes = c.sent+sent, c.takes+takes }

func (c *cost) sum() int64 { return max(c.sent, c.takes/Times) }
