// Package audit proves a history: that what the records say was done is what happened, by
// the commits alone.
//
// It owns the replay of commits and the findings. It must not know what joins are lawful, nor
// which hand commits: package guard judges them here as it does in a running workspace. It
// writes nothing but signed tags and has no state; findings are told by one goroutine.
//
// # What is asked of a commit
//
//	by                       then
//	a Bagpipe                it changes one item at most; its trailers say what it changed, and
//	                         state.Apply, given the record before, makes the record after, byte
//	                         for byte, of one event; where the execution record stays, such as
//	                         after a check of fixity, guard takes the change as lawful
//	a Bagpipe, retiring      it takes out the records of a finished item, and names a commit that
//	                         leads to it in which they stand; or brings back the same ones
//	a Bagpipe, recovering    it brings an item back that was not there, or the next version just
//	                         after the one before; what was done until then it takes on trust
//	a Bagpipe, in answer     it brings back what was acknowledged, adds the hold that says so,
//	                         and nothing else
//	bagpipe join             it is the join of its parents, and worded as such
//	anybody else             what guard takes is lawful; what it does not was answered by a later
//	                         commit; its trailers tell of no event that it does not hold
//
// Besides: every object has the bytes that its name says; pinned definitions and inventories
// fit their digests; no step was completed twice.
//
// The event of a commit is found from the two records (event.go): each leaves other traces.
// Times, messages and keys are taken from the record after, so what is proved is that the
// transition was legal and everything else follows from it.
package audit
