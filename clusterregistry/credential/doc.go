// Package credential turns a Cluster and its Secret into the configuration of a client.
//
// Use: Config gives a rest.Config and the bearer token apart from it, because tokens are renewed
// while connections stay. Connect with Wrap to send the token of the moment.
//
// What was traded: a kubeconfig may say only what is inside of it. One that names files would make
// the federation read its own disk for whoever may write a Secret, and one that names a command
// (exec, auth-provider) would make it run programs. Both are refused, so a kubeconfig must be
// self-contained: tokens, and certificates as data. Refused as well is what would show the credential
// to others: insecure-skip-tls-verify and proxy-url.
//
// The registry and the proxy of the API server both read credentials here, so that what one refuses
// the other does too.
package credential
