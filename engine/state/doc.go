// Package state is the execution metadata: what was done with an item and what
// is to be done. It owns the record (execution.json), the workflow definition it
// is read against, the events that may happen to it (Apply), the statuses
// computed from it, the join of two copies, and the codec.
//
// It is pure. It must not know files, Git or clocks; every time comes in with an
// event. It has no goroutine and needs no lock: a value belongs to its caller.
//
// # The record
//
//	{
//	  "intents":    {"ULID-ENGINE": {"kind": "hold|release|retry|lost", "at", "by", "text", "workflow", "step", "attempt", "target"}},
//	  "item":       "3fa9c0d2e1b7a45",
//	  "milestones": {"registered": "2026-11-20T10:00:00Z"},
//	  "schema":     1,
//	  "workflows":  {"accession.1": {
//	    "created", "definition": {"digest", "name"}, "notBefore", "skip": {"STEP": "REASON"}, "status",
//	    "steps": {"unpack": {"status", "attempts": {"N-ENGINE": {
//	      "state": "in-progress|completed|skipped|failed|deferred", "kind": "content|system",
//	      "claimed", "started", "ended", "elapsed", "notBefore", "runner", "by", "message", "text"}}}}}}
//	}
//
// Times are RFC 3339 UTC; elapsed is in seconds. Fields not known here are kept
// and written back. An attempt is written by the engine in its key alone; a
// person's act (complete, skip, fail) is an attempt with "by". Intents are only
// added. "skip" names the steps this item does not need, decided when the
// workflow starts and unchanged for good. Every "status" is computed, written
// for the reader and ignored when read.
//
// A "lost" intent names an attempt whose engine is dead. A "retry" intent names
// the attempt it was formed on: failures up to it no longer count. A "release"
// names in "target" the hold it ends, so a hold placed elsewhere at the same
// time survives the join. A "hold" with a "target" is an engine's answer to the
// commit named there.
//
// # The status of a step
//
// A completed attempt counts whatever was intended elsewhere at the same time,
// so that no join loses it. In this order:
//
//	some attempt completed                       completed
//	some attempt skipped                         skipped
//
// and then, of the attempts after the last one a retry names, leaving out lost
// and deferred ones:
//
//	the last one is in progress                  in-progress
//	the last one failed, notBefore is set        waiting (it is retried by itself)
//	the last one failed                          failed
//	none                                         waiting
//
// An attempt in progress with a higher one beside it has lost its claim.
//
// # The status of a workflow
//
//	a required step failed                       failed
//	every step completed, skipped, or optional   completed
//	  and failed
//	otherwise                                    in-progress
//
// A completed workflow is inactive. A step is satisfied for those that need it
// when it is completed or skipped, or optional and failed. After a required
// failure nothing new of that workflow starts; what is running is recorded.
//
// # Events and legal transitions
//
//	event      from                      to                       refused when
//	Start      (no such instance)        first step completed     the instance is there
//	Claim      waiting                   in-progress              held; prerequisite open; date to come; workflow failed; manual step
//	End        in-progress, same attempt completed skipped failed waiting   the attempt is not the current one (ErrStale)
//	Lost       in-progress, same attempt waiting                  the attempt is not the current one (ErrStale)
//	Decide     waiting or failed         completed skipped failed in progress; prerequisite open
//	Retry      failed, or waiting for    waiting                  any other status
//	           its retry or its date
//	Hold       (any)                     held                     already held
//	Release    held                      (as before)              not held
//
// An event that is refused is an *IllegalError and changes nothing.
//
// # The join
//
// Join(a, b) is the union of intents, milestones (the earlier time), workflow
// instances and attempts. Two copies of one attempt differ only in how far its
// one writer had come: the ended one wins; between copies equally far the
// greater encoding wins, so that the join is commutative, associative and
// idempotent for any input. No completed attempt is ever left out.
//
// # Mending
//
// Mend(before, now) holds a record that another writer committed against the one
// it was made from. It takes what the laws of the record allow and mends the rest:
//
//	what now has                                   then
//	an intent, milestone, workflow or attempt      put back
//	  of before is gone
//	one of them altered: an ended attempt, an      as it was before
//	  intent, a workflow's head (definition,
//	  created, notBefore, skip), one in progress
//	  other than by ending; a milestone later
//	a milestone new or earlier, and no completed   left out
//	  attempt ended at that time
//	an attempt new, and its prerequisites are not  left out
//	  done, or its step is not in the definition
//	a retry new, of an attempt higher than any     left out
//	a workflow new, and its definition nowhere     left out
//	anything else                                  taken
//
// An engine drops its own deferred attempts when it claims again, so one that was
// deferred or in progress may be gone when a higher one of its engine is there.
// Prerequisites that are optional do not count here, as their failure may have
// been retried since. What is left out could not have come from Apply, nor from a
// join of records that did. The result holds all of before; mending it again, or
// mending what Apply and Join make of before, changes nothing.
package state
