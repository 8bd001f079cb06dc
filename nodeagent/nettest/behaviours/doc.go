// Package behaviours specifies what Services do on a node, as tests with packets: each way to bring a ruleset into a kernel must
// pass all of them, in both families.
//
//	func TestMyWriterBehaviours(t *testing.T) {
//		behaviours.Run(t, func(t testing.TB) behaviours.Writer { … })   // called in the network namespace of the node
//	}
package behaviours
