// Package identity says what items are known by: the digest of what was dropped, the
// identifiers people use, and the originals that stay in the inbox.
//
// It owns the keys that lead to items, their file in .bagpipe/index, and the judgement of a
// drop that is known already. It must not know how a drop is admitted. The keys only name
// candidates: what counts is their manifest where the question is asked.
//
// An Index may be used by several goroutines; Keys have a lock of their own.
package identity
