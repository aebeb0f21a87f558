// Package notices tells people what notify: in bagpipe.yaml asks for: failures, steps that wait
// for a person, stalls, fixity, schedules, and what was mended, as digests that go to a
// program, by mail, to an Atom file or a webhook.
//
// It owns .bagpipe/notices/NAME.json. It must not know how an item fails, nor what a person can
// do then. Package alert tells of one workflow, to whoever its definition names.
//
// # The rules
//
// News has a key, and is told once: what stands now and was not told is new, what was told and
// stands no more is mended. Failures, people and stalls are asked of the index; fixity and
// schedules are read from the commits since the last look, and at the first asked of the index and of the
// schedules' states. A digest is made when something is
// new, the last one is as old as every: says, and the hours are not quiet. It is written down
// with its identifier, and what it tells of, before it is sent: a crash sends it once more,
// under the same identifier. A mail that the server takes for some, and refuses for now for others, is
// tried again for these alone. One that cannot be handed over is tried again, ever more seldom,
// for a day; then it is given up, and told of. What is new meanwhile waits for the next.
//
// NAME.json may be deleted: what waits then is told once more. Of several engines on one host
// the one that holds the lock beside it tells.
//
// # Locks
//
// One goroutine of a process looks, the holder of Teller.turn.
package notices
