// Package agentcert gives certificates to the agents of clusters whose connection is Pull.
//
// An agent asks with a CertificateSigningRequest of the signer v1beta1.AgentSigner: first with a bootstrap token that was made for its cluster, and can be
// used once; then, before its certificate expires, with that. Judge decides what is approved by itself. Whatever else asks waits for a person with the
// right to approve for this signer. What is approved is signed for the Cluster that is there now: its UID is in the certificate, so that one for a Cluster
// that has left is good for nothing.
package agentcert
