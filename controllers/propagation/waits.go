package propagation

import (
	"hash/fnv"
	"sync"
)

// blockedCopies tracks the copies that wait for other copies: by the law, for their turn in a rollout, or to leave.
type blockedCopies struct {
	locks [64]sync.Mutex // by object: two members must not both count on the same ready replicas

	waiting   sync.Mutex
	forOthers map[key]map[string]bool
}

func (w *blockedCopies) lock(k key) *sync.Mutex {
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.Namespace + "/" + k.Name))
	return &w.locks[h.Sum32()%uint32(len(w.locks))]
}

// setWaiting records whether a copy waits. Call it before looking at the others, so that no change of theirs is missed.
func (w *blockedCopies) setWaiting(k key, cluster string, waits bool) {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	switch {
	case waits && w.forOthers == nil:
		w.forOthers = map[key]map[string]bool{k: {cluster: true}}
	case waits && w.forOthers[k] == nil:
		w.forOthers[k] = map[string]bool{cluster: true}
	case waits:
		w.forOthers[k][cluster] = true
	default:
		delete(w.forOthers[k], cluster)
		if len(w.forOthers[k]) == 0 {
			delete(w.forOthers, k)
		}
	}
}

// waitingFor returns the clusters whose copies of an object wait.
func (w *blockedCopies) waitingFor(k key) (clusters []string) {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	for cluster := range w.forOthers[k] {
		clusters = append(clusters, cluster)
	}
	return clusters
}

// thatWait returns the objects of which any copy waits.
func (w *blockedCopies) thatWait() (keys []key) {
	w.waiting.Lock()
	defer w.waiting.Unlock()
	for k := range w.forOthers {
		keys = append(keys, k)
	}
	return keys
}
