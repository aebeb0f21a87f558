// Package door owns who is let in: the sessions of browsers, the one-time link that serve
// prints, passwords, tokens, and the word of a proxy that is listed.
//
// It must not know what is asked for. Sessions live in memory, as digests of their cookies,
// and end with the process. A Door may be used by several goroutines; its lock guards the
// sessions, the link and the counts of tries.
package door
