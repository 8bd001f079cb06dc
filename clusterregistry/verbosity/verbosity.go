// Package verbosity says how much a process may log. It imports nothing, so that small programs stay small.
package verbosity

// Most is the highest level of logs that holds nothing secret: beyond it client-go logs the bodies of requests and answers,
// of Secrets and of new tokens, too.
const Most = 7
