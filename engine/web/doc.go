// Package web answers browsers and programs over HTTP: the pages for people, the REST calls
// of WorkDo in XML below /workflow, and the JSON calls below /api/v1.
//
// It owns the server: time-outs, limits, the headers of every answer, the names it answers
// to, and who is let in. Pages, calls and the command line ask the same rooms: ask answers,
// act decides, intake takes in. It must not know the ledger, nor how a commit is made; the
// acting person travels with each call. It keeps nothing that cannot be rebuilt: sessions end
// with the process, accounts are engine/web/access's.
//
// The trip of a request:
//
//	guard.go                 its Host is one of ours; the headers of the answer
//	internal/door            who asks: a session, a token, a proxy's word
//	internal/pages           HTML for people
//	internal/workdo          XML for robots, as Stanford's server has it
//	internal/api             JSON
//	internal/upload          files on their way into an inbox, by forms and by tus
//	internal/bulk            acts on many items
//	internal/desk            the rooms, in the name of who asks; what an error means
//
// A Site may be used by several goroutines. Serve waits for the requests it began; streams
// end with its context.
package web
