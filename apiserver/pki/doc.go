// Package pki makes, at the first start of a federation, everything by which its parts know each
// other, and keeps it afterwards: a certificate authority, the serving certificate, client
// certificates for the administrator and the controllers, the key that signs service account tokens,
// the front proxy's certificates, the key that encrypts Secrets in etcd, and kubeconfig files.
//
//	files, err := pki.Ensure(dataDir, pki.Request{Server: "https://127.0.0.1:6443", Hosts: []string{"fed.example"}}, time.Now())
//
// Of what cannot be made again the authority comes last: where it is, or the administrator's kubeconfig,
// the rest was made, here or where the folder was copied from. From then on
// a missing authority or key is an error and not made anew, for what it signed or encrypted would be
// lost. Certificates that end soon, or that lack a host, are renewed.
//
// Rotate puts other authorities in the place of those that there are, in three steps with a start after each (ADR 116).
//
// All keys are ECDSA P-256, all files are readable by their owner only. The authority's key lies beside
// the rest: who wants it elsewhere brings certificates of their own, signed by it, into the folder.
package pki
