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
//	  "intents":    {"ULID-ENGINE": {"kind", "at", "by", "text", "workflow", "step", "attempt", "target", "digest", "site"}},
//	  "item":       "3fa9c0d2e1b7a45",
//	  "milestones": {"registered": "2026-11-20T10:00:00Z"},
//	  "schema":     1,
//	  "workflows":  {"accession.1": {
//	    "created", "definition": {"digest", "name", "startedWith"}, "ended", "notBefore",
//	    "skip": {"STEP": "REASON"}, "started", "startedBy": "WORKFLOW.N/STEP", "status",
//	    "steps": {"unpack": {"status", "attempts": {"N-ENGINE": {
//	      "state": "in-progress|completed|skipped|failed|deferred", "kind": "content|system",
//	      "claimed", "started", "ended", "elapsed", "notBefore", "runner", "version", "by", "message", "text",
//	      "progress": {"at", "note", "percent"}, "children": 500, "chosen": ["a"], "content": true, "cpu": 0.21, "idle": 4.2,
//	      "inputs": "sha256:…", "outputs": "sha256:…"}}}}}}
//	}
//
// Times are RFC 3339 UTC; elapsed is in seconds. Fields not known here are kept
// and written back. An attempt is written by the engine in its key alone; a
// person's act (complete, skip, fail) is an attempt with "by". Every "status",
// and a workflow's "started" and "ended", is computed, written for the reader and ignored when
// read. "skip" names the steps this item does not need, decided when the workflow
// starts, or is moved, and never withdrawn. "startedBy" is the step that started
// the workflow. An attempt is "started" with its claim, unless that was made ahead of its turn, and,
// once it has ended, when its robot was called. "progress" is what the attempt's robot told last of how far it had
// come; it is there once the attempt has ended. "chosen" names, of the steps that its step
// chooses from (choose), those that are done: the others that require it are skipped, and
// all are done where it is absent. "cpu" is the processor time of its program, in seconds;
// "idle" for how many seconds the instance of its program had had nothing to do.
// "inputs" is the digest of what it was given (its definition, what was dropped, and the
// outputs of the steps that it rests on), "outputs" of what it made; two completed attempts with
// equal inputs and other outputs diverge.
// "content" is there where it published the content of an item that was registered without.
// "children" is how many items the
// attempt made, or found made by attempts before it.
//
// An attempt's key is unique among all attempts at steps of that name on the
// item, in whichever workflow (Execution.NextKey), as logs and scratch folders
// are named by step and attempt.
//
// "definition.digest" names the pinned definition the workflow runs by. It is the
// one it was started with until a "migrate" intent names another; then
// "startedWith" keeps the first. The migrate intent that no other comes after
// counts; of several, made apart, the one with the highest key.
//
// # Intents
//
// They are only ever added, and each is keyed by time and engine.
//
//	hold        no step of the item starts             until a release names it in "target"
//	deactivate  no step of the workflow starts         until an activate names it in "target"
//	internal    the workflow failed, and no step of    until an activate names it in "target"
//	            it: Bagpipe itself was at fault
//	lost        the attempt's engine is dead
//	cancel      the attempt is to be ended, as failed and without a retry
//	retry       failures of the step up to the attempt no longer count
//	reset       that one attempt no longer counts, and failures up to it
//	migrate     the workflow runs by the definition    until a migrate names it in "target"
//	            in "digest"
//	own         the engines of "site" do the steps     until an own names it in "target"
//
// A hold with a target is an engine's answer to the commit named there. It is placed beside other
// holds; the first that says "fixity: no copy is sound: …", beside those of fixity; any other only where there is none. A release
// or an activate names the very intents its author saw, so a hold placed
// elsewhere at the same time survives the join. A reset likewise names the very
// completion its author saw: one intent for each. A step whose engine is gone is
// reset by a retry that names the lost attempt: how it ended its author cannot know; a
// step after it by a reset, as it worked on what is made anew.
//
// # The status of a step
//
// A completed attempt counts whatever was intended elsewhere at the same time,
// unless a reset names that attempt. In this order:
//
//	some attempt completed, and was not reset    completed
//	some attempt skipped, and was not reset      skipped
//
// and then, of the attempts after the last one a retry or reset names, leaving
// out lost and deferred ones:
//
//	the last of all was cancelled, and lost      failed
//	the last one is in progress                  in-progress
//	the last one failed, notBefore is set        waiting (it is retried by itself)
//	the last one failed                          failed
//	none                                         waiting
//
// An attempt in progress with a higher one beside it has lost its claim. A step
// the definition does not have (a join brought it, see Migration) has a status by
// the same rules; it opens, closes and blocks nothing.
//
// # The status of a workflow
//
//	every step completed, skipped, or failed     completed
//	  and tolerated
//	deactivated, or older than the version       inactive
//	  that the item is at
//	an internal error stands, or a required      failed
//	  step failed (with afterFailure: independent
//	  once no step is open that does not need it)
//	dated for later, and nothing of it begun     scheduled
//	otherwise                                    in-progress
//
// A failed step is tolerated when it is optional or continueOnFailure. A workflow
// that is completed or inactive is out of all queues; an item all of whose
// workflows are has nothing to do. "ended" is, of a completed workflow, when the
// last of its steps ended; of a failed one, when the first failure that makes it
// so came. "started" is when the workflow was created; of one that is dated for later, when the
// first attempt was claimed, or a person acted; an attempt that tells of it is not dropped.
//
// A step is satisfied for those that need it when it is completed or skipped, or
// failed and tolerated: an optional step that failed still satisfies. After a
// required failure nothing new of that workflow starts (with afterFailure: independent
// nothing that needs it, directly or through others); what is running finishes
// and is recorded. Other workflows of the item go on.
//
// # When a step can start (Blocked)
//
// In this order: it waits; the item is not held; the workflow is active, of the
// version that the item is at, and has not failed; what it requires is satisfied;
// the item has content, where the step needs it;
// the workflow's date has come, then the step's own; the pause before its next try
// is over; a manual step waits for its person.
//
// requires: WORKFLOW/STEP asks the item's latest instance of that workflow, the
// one with the highest number. While the item has none, the step waits.
//
// A step's notBefore is a time (an RFC 3339 time, or a date, which begins at
// midnight UTC), or a duration after the workflow's start, or a path below
// metadata in manifest.json that leads to a time. A path that leads nowhere asks
// for nothing; one that leads to something else keeps the step waiting, and says
// so.
//
// # Conditions
//
// when: lists conditions, which all must hold. Each has a path into manifest.json
// and one operator:
//
//	equals: V       the value is V: text, number, true, false
//	differs: V      it is not, or there is none
//	in: [V, …]      it is one of these
//	notIn: [V, …]   it is none of these, or there is none
//	exists: B       whether there is a value that is not null
//	above: N        it is a number greater than N
//	below: N        it is a number less than N
//	matches: P      it is text that fits the pattern P: see Patterns in docs/reference.md
//
// A path is names with dots between them, a number for a place in a list, # for
// the length of one: metadata.sheets, collection, metadata.authors.0.name,
// metadata.authors.#. A list is compared by its members for equals and in: one
// that fits is enough.
//
// Conditions are asked once, when the step could start otherwise. When they do
// not hold the step is skipped, with the reason and both times, and later changes
// of the manifest do not change that; a reset asks anew.
//
// # Events and legal transitions
//
// From and to are the step's statuses where a step is named.
//
//	event      from                      to                           refused when
//	Start      (no such instance)        first step completed         an instance of that workflow is active
//	Claim      waiting                   in-progress                  Blocked says why; the step is not needed
//	Note       in-progress               in-progress                  the attempt is not the current one
//	End        in-progress, same attempt completed skipped failed     the attempt is not the current one (ErrStale)
//	                                     waiting
//	Lost       in-progress, same attempt waiting                      the attempt is not the current one (ErrStale)
//	Decide     waiting or failed         completed skipped failed     in progress; prerequisite open; inactive
//	Unneeded   waiting                   skipped                      Blocked says why; the step is needed
//	Retry      failed, or waiting for    waiting                      any other status
//	           its next try
//	Reset      completed skipped failed, waiting                      in progress, of the step or of one after it;
//	           or waiting for its next                                the first step; the status is not the one seen
//	           try, or since an attempt
//	           was lost
//	Hold       (any)                     held                         held already
//	Release    held                      (as before)                  not held
//	Deactivate workflow active           inactive                     inactive or completed
//	Activate   workflow inactive, or     (as before)                  neither
//	           failed by an internal
//	           error
//	Internal   workflow active; the      workflow failed; the step    the attempt is not the current one (ErrStale)
//	           attempt in progress       waiting
//	Own        (any)                     (as before)                  the site owns the item; unless it is taken over
//	                                                                  with a reason: asked elsewhere, or a step in progress
//	Migrate    workflow active           the same, by another         see Migration
//	                                     definition
//
// An event that is refused is an *IllegalError and changes nothing. An End whose
// robot was not available skips an optional step, with both times, and fails a
// required one.
//
// Milestones are reached when a step with milestone: is completed, and when the
// result of an attempt or the act of a person names them, however it ended. The
// first time stands; a reset does not take a milestone back. "registered" is reached by
// the start of an item's first workflow, whether its first step names it or not.
//
// # Migration
//
// Steps are mapped by their names. It is refused when a step is in progress; when
// a step that was attempted is not in the new definition; when a completed or
// skipped step would need, by the new definition, one that is not satisfied; and
// when the new definition is another workflow's, or the one it runs by.
//
// # The join
//
// Join(a, b) is the union of intents, milestones (the earlier time), workflow
// instances and attempts. Two copies of one attempt differ only in how far its
// one writer had come: the ended one wins; between copies equally far the
// greater encoding wins, so that the join is commutative, associative and
// idempotent for any input.
//
// No completed step is lost: every completed attempt of either copy is in the
// join, and counts there unless one of the copies reset that very attempt. A
// completion that the author of a reset did not know of therefore stands.
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
//	  created, notBefore, startedBy, skip), one in
//	  progress other than by ending; a milestone
//	  later
//	a milestone new or earlier, and no attempt     left out
//	  ended at that time
//	an attempt new, and its prerequisites are not  left out
//	  done, or its step is not in the definition
//	a retry or reset new, of an attempt higher     left out
//	  than any
//	a migration new, and its definition nowhere,   left out
//	  or another workflow's
//	a workflow new, and its definition nowhere     left out
//	anything else                                  taken
//
// An engine drops its own deferred attempts when it claims again, so one that was
// deferred or in progress may be gone when a higher one of its engine is there.
// Prerequisites that are tolerated when they fail do not count here, as their
// failure may have been retried since; one that was done and reset since counts
// as done; and of a workflow that was moved, any definition it ran by will do. A
// migration may add steps to skip, and a run that was started on two copies apart
// may have the later start's head. What is left out could not have come from
// Apply, nor from a join of records that did. The result holds all of before;
// mending it again, or mending what Apply and Join make of before, changes
// nothing.
//
// # Policies
//
// The keys of a definition that say how many, how often and how long are read
// here and obeyed by the engine and its runner:
//
//	instances      of a step: attempts at once in one process; 0: as many as -j
//	limit          of a step: attempts at once in the workspace, by the committed states
//	inFlight       of a workflow: items between their first claim and their end, in the
//	               workspace, but for those that failed, are held, or wait for a person, a
//	               date or other items; beyond it no further item's first step starts, and
//	               admission waits
//	timeout        of one attempt
//	retries        of a system failure, by itself, for each call; backoff: {first, most}
//	continueOnFailure, onError, threshold: {count, window, action, per}, coolDown: below
//	premis         what its ends are in PREMIS, a term of layout.PremisTerms
//	onBatchComplete, keepInputs: below; parentLast, siblings, poolSize: see Multipliers
//	warmUp         of a step with command: a program that must succeed once in each engine
//	               before it claims the step
//	alert          of a workflow: {command, url, every}: told of what failed and waits for
//	               a person, as a digest; by the definition in force, not the pinned one
//
// A failed attempt is dealt with in this order: retry, then count, then threshold,
// then continue, then fail. Retried failures are not counted. The threshold looks
// at the step's last window ends over all items, 0 being all ever, and is reached
// by count failures among them; a count of 0 ignores failures. Its action is
// disable, which takes the step out of the flow (an optional step is then skipped,
// a required one holds its items) until it is enabled again, or, after coolDown,
// one item tried has succeeded; or terminate, which drains and stops the runner.
// Both stand in controls/steps.json, not in the items' records. per says whose ends are
// counted (Step.CountsPer). With continueOnFailure: ask a program, onError, is asked once the
// failure is committed; if it says continue, the step is skipped by a decision of its own.
// The defaults are no time-out, no retry, no continuing, count 0, window 0.
//
// An end is an attempt by a robot that completed, skipped or failed its step for
// good: not one that is tried again by itself, was put off, or was lost, and not
// what a person decided. Of failures both kinds count. Ends are ordered by their
// time, and are those of the items whose pinned definition has a threshold for the
// step; the threshold asked is that of the item that failed.
//
// # Controls
//
// controls/steps.json says, of steps of a workflow over all items, how they stand:
//
//	{
//	  "schema": 1,
//	  "steps": {"accession/ocr": {
//	    "status": "disabled", "at": "…", "by": "…", "text": "3 of the last 10 ends failed",
//	    "coolDown": 600, "until": "…", "trial": {"item": "ID", "workflow": "accession.1", "at": "…"}}}
//	}
//
//	enabled    the step is in the flow; failures count from "at" on
//	disabled   it is out of the flow until it is enabled
//	stopped    its failures stopped the runs that were at work at "at", of "engine" alone
//	           where that is given; the next ones go on, and failures count from "at" on
//
// A step that is not listed is enabled, and failures count from the beginning.
// coolDown is in seconds and stands there when one was set at the time. From until
// on one item is tried: its claim writes the trial into the same commit, and while
// the trial stands no other item's claim is taken. It stands as long as that item's
// step is in progress, or could start but for its next try; else the next claim
// takes it over. The trial's end is in the commit of the step's end: completed or
// skipped enables the step; failed for good, or not available, sets until a
// coolDown later. Without until a person enables it.
//
// Disabling twice keeps the first; the counts are never written, as they follow
// from the items' records. Keys that are not known are kept. A file that cannot be
// read, as after a push, is not in force: the last sound one is.
//
// A step with onBatchComplete starts when all items of the item's batch have come as
// far; one that waits for them is not in flight, so that limits let them through.
// keepInputs keeps what an attempt was given, for a replay that writes no record.
//
// # Multipliers
//
// A step that multiplies makes child items, each with a record and a history of its
// own. A child's manifest.json names its parent, the run and the step; the parent's
// record tells how many children the attempt made, and does not list them. All of
// them are committed before the attempt ends (some while its program runs), so that once it
// is completed they are all there. What they and their parent make of each other is not stored: it follows
// from the records (engine/queue), and is asked again at the commit of a claim
// (Execution.Around).
//
//	a child is done     all its workflows are completed or inactive
//	           failed   a workflow of it is failed, or its record cannot be read
//	           alive    from the first attempt after the first step on, until it is
//	                    done, failed, held, or waits for a person or a date
//
//	parentLast: true    the steps that need this one, in any workflow of the parent,
//	                    wait until as many children are there as were made, and all
//	                    are done. One that failed keeps them waiting, unless the step
//	                    is optional or continueOnFailure: then it counts as done.
//	onChildFailure:     tell, as without the key; skip: a child that failed counts as
//	                    done; fail: it does, and a step that needs this one fails
//	siblings: stop      while a child stands failed, nothing new of the others starts;
//	                    what runs finishes. As with the steps of a workflow, a retry
//	                    lets them go on. continue, or no key: they run on.
//	poolSize: N         a child beyond the first N that are alive, or may be next, does
//	                    not begin. The order is that of queues: lane, age, identifier.
//	                    One that was alive before and goes on, after a retry or a
//	                    person's act, is not held back, and counts.
//
// Children that wait for their place are items already: they can be seen, say why
// they wait, and survive whatever happens to the step's scratch. The policies are those
// of the definition the parent's run goes by. A parent that waits for its children
// alone is not in flight, so that limits on items in flight let them through.
package state
