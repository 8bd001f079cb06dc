// Package pki creates, at the first start of a federation, everything by which its parts authenticate each other, and keeps it
// afterwards: a certificate authority, the serving certificate, client certificates for the administrator and the controllers,
// the key that signs service account tokens, the front proxy's certificates, the key that encrypts Secrets in etcd, and
// kubeconfig files.
//
//	files, err := pki.Ensure(dataDir, pki.Request{Server: "https://127.0.0.1:6443", Hosts: []string{"fed.example"}}, time.Now())
//
// Of what cannot be created again the authority comes last: if it exists, or the administrator's kubeconfig, the rest was
// created, here or where the folder was copied from. From then on a missing authority or key is an error and is not replaced,
// because what it signed or encrypted would be lost. Certificates that expire soon, or that lack a host, are renewed.
//
// Rotate replaces the authorities in three steps with a start after each (ADR 116).
//
// All keys are ECDSA P-256, all files are readable only by their owner. The authority's key is beside the rest: to keep it
// elsewhere, put your own certificates, signed by it, into the folder.
package pki
