// Package content looks at what was dropped, and reads, copies, digests and moves it.
//
// It owns the rules that a drop can break, the signature of a drop, and the digest that
// doc.go of engine/inbox specifies. It must not know what a drop is for, nor journals. It
// opens no file but regular ones, and follows no link. Its functions keep no state.
package content
