// Package weight says what an answer in protobuf or JSON costs to decode, from its bytes as they come by: before anything is decoded, and without holding
// them. A list of empty Pods has two bytes for each, and takes a kilobyte for each.
//
// The cost is in bytes as they are sent: Times as many in memory cost one. What honest servers send takes less, and costs its length. What a decoder could
// read in another way than this package is refused: no server that speaks the API sends it.
package weight

import "fmt"

// Times is how many bytes one byte of an answer may become in memory, and still cost no more than one.
const Times = 16

// Weigher weighs an answer.
type Weigher interface {
	// Add takes the next bytes. It returns what everything costs so far, and what the most expensive event does of those that these bytes belong to. An
	// error is final: nobody may decode the answer.
	Add(part []byte) (total, event int64, err error)
}

// Refuse returns a Weigher of an answer that nobody may decode, if it has any bytes.
func Refuse(why string) Weigher { return refused{fmt.Errorf("the answer is refused: %s", why)} }

type refused struct{ error }

// Add implements Weigher.
func (r refused) Add(part []byte) (total, event int64, err error) {
	if len(part) == 0 {
		return 0, 0, nil
	}
	return 0, 0, r.error
}

// cost is what something costs.
type cost struct{ sent, takes int64 }

func (c *cost) add(sent, takes int64) { c.sent, c.takes = c.sent+sent, c.takes+takes }

func (c *cost) sum() int64 { return max(c.sent, c.takes/Times) }
