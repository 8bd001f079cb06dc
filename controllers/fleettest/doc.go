// Package fleettest runs the federation's controllers over a fleet of clusters in memory, with faults, in a time
// of its own. Its scenarios are text files that can be read without knowing Go: testdata/*.txt.
//
//	go test ./controllers/fleettest                          # all scenarios, and some random steps
//	go test ./controllers/fleettest -run Scenarios/drain     # one scenario
//	go test ./controllers/fleettest -run Scenarios -update   # write what they show into the files: read the diff
//	make fleet SEED=7 SEEDS=1 STEPS=5000                     # random steps: of one seed, so many
//
// The controllers and the registry of members are the real ones. Around them are: APIs (package memapi), members that turn
// replicas into pods after a while (Member), and a wire to each member that can be cut, hung, slowed and made to refuse (Wire).
// They run in one process or share the work among several, which may die (processes.go).
//
// After each step the laws are checked (laws.go): ready replicas never fall below what was asked for or was there
// through anything the federation does; and once the fleet has settled, nothing is lost, left behind or out
// of place, the numbers are right, what members have been told of each other is true (across.go), and nobody writes anything for
// five minutes. What a member was told of a cluster is never taken away because that cannot be seen.
//
// The random driver (Random) takes steps in that language. It makes everything well after every 25 and checks the laws of a
// settled fleet, and deletes all objects after every 200, so that what comes later depends on nothing before. When a law
// is broken, the commands since then are played again with fewer and fewer of them (Shrink), and what is left
// is printed: a scenario to be kept in testdata.
//
// What was traded: time is that of testing/synctest, so an hour takes moments, but within one instant the order
// of goroutines is that of the Go scheduler. A scenario therefore shows what has settled, not each step on the
// way there; the laws watch the way. Pods are counted, not objects.
package fleettest
