// Package canonical says whether an encoded object is written as Kubernetes itself writes it, so that its bytes may be passed on without decoding them.
//
//	f := canonical.Of[corev1.Pod]("metadata.", "metadata.name", "metadata.labels.") // the name, the labels, and what is between them
//	parts, ok := f.Protobuf(data, nil)
//
// Canonical is stricter than valid. Every field is known and has its type, none comes twice, and they are in the order in which Kubernetes writes them:
// so all decoders read the same in it, and each would write it again as it is. What is not canonical may be good all the same, and has to be decoded
// to know.
package canonical
