// Package api owns the JSON calls below api/v1: their routes, their types, and the OpenAPI
// document, which come from one place (huma).
//
// It must not decide: it asks and acts through the desk, in the name of who calls. Answers are
// what --json prints. Errors are application/problem+json (RFC 9457) with a code and what
// would help.
//
// Events come from the history: the id of an event is a commit, and what came after a commit
// is read from there, so nothing is kept for those who listen.
//
// A POST with an Idempotency-Key is answered once: its answer is kept for a day, and its
// commit names it in the trailer Bagpipe-Request (KEY BODY, digests), by which the answer is
// found after a restart. Keys has the lock.
package api
