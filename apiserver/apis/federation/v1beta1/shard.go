package v1beta1

import "hash/fnv"

// Shards is the number of virtual shards among which federated objects are divided. It can never change: it is in the
// labels of all copies.
const Shards = 64

// Shard returns the virtual shard of a federated object, from 0 to Shards-1; namespace may be "". Objects of one name
// are in one shard, whatever their kind.
func Shard(namespace, name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(namespace + "/" + name)) // never fails
	return int(h.Sum32() % Shards)
}
