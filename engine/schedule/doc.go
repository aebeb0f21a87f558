// Package schedule fires what schedules/NAME.yaml says when it is due.
//
// It owns schedules/state/NAME.json and the firings; package timetable owns the file that
// people write, and says when it is due. It must not know what a deed does: a program of the
// person's, or what who opens the engine hands over.
//
//	{
//	  "ended": "…",                   when the last firing did: every: counts from then
//	  "firings": {                    the last twenty, by the time they were due
//	    "2026-11-24T02:30:00Z": {"begun": "…", "ended": "…", "engine": "5c1e9a70", "message": "…",
//	                             "outcome": "completed", "resumed": true}
//	  },
//	  "name": "nightly-fixity",
//	  "schema": 1,
//	  "since": "…",                   what was due before is none of its business
//	  "status": "started",            or stopped
//	  "through": "2026-11-24T02:30:00Z",  what was due until then needs nothing any more
//	  "timing": "cron 30 2 * * *"     the trigger that this is of
//	}
//
// Outcomes: completed; failed; timeout; missed (passed over, by missed: skip or within:); lost
// (its engine was gone twice); stopped (by a person: "stop" names them); replaced. A firing
// without an outcome runs.
//
// # Firing
//
// A firing is claimed by its commit, which adds it and moves through: of several engines one
// fires, and what is due once is fired once, whatever the clock does. Its end is a commit, too.
// One whose engine is gone is resumed once, with the same due time. While one runs, what falls
// due is absorbed, or done after it (overlap: wait). A schedule that is seen for the first time
// begins then; a trigger that was changed missed nothing before.
//
// # Queues
//
// A step of a queue that a schedule works on is left to it: no loop hands it out but in a
// shift, which a firing opens until the queue is empty or its hours are over.
//
// # Locks
//
// Keeper.mu guards what is known of the states and what runs here; Shifts.mu what is counted
// of steps; clock.mu what was seen of a clock that was put back.
package schedule
