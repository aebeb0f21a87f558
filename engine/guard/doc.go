// Package guard holds what other writers commit against what the items were before.
//
// It owns the list of commits that nobody has looked at, the verdicts on the items in
// them, and .bagpipe/checked. It must not know the index, nor what a step does.
//
// # What others commit
//
// A push, git update-ref, another Bagpipe: the store takes in their commits, and the
// guard compares every item they touched. Names in commits prove nothing, so each commit
// since the last one this workspace checked is compared with its parents, item by item:
//
//   - the execution record by state.Mend, of a merge with the join of its parents;
//   - what the manifest says the item is by state.MendManifest; its inventory may
//     change only together with a step that completed;
//   - inventory.json by the digest in the manifest;
//   - deposits.json by the copies on targets that it had: none may go; a commit by hand, but a merge, changes nothing in it;
//   - delivery.json, but in a merge, by whether it can be read, and by ledger.UntrueDelivery: what a
//     target holds changes by an engine that said before that it is at it;
//   - quality.json, but in a merge, by whether it can be read and is the item's, and with the summary in the manifest by
//     the end of a robot's attempt in the same commit, or a person's decision (ledger.NoteDecisions): nothing else changes it,
//     but for a new version, which begins without;
//   - a pinned definition by the digest that is its name;
//   - a retired item by the records that last stood: they are those it had, in a commit that
//     leads there, and finished. Who takes its line away removes the item.
//
// A change that fits is taken as it is. An item whose manifest has values in conflict and that nothing
// holds, as git leaves it that joins commit by commit, is held. An item of which something was removed, altered or
// made up is answered by one commit: its records with everything that was
// acknowledged, and a hold whose text says the breach, its commit and its author; the
// pushed commit stays in the history. Mending a mended record does nothing, so no two
// engines answer each other, and the second to come finds nothing left to do. A file in the
// place of a folder of records, or the other way round, is removed by the store as the record
// is written (gitstore.Options.MakeWay). A pinned
// definition is put back without a hold, and until then read from the history. An attempt
// in the name of the engine that runs here, which that engine did not make, is kept, as
// attempts only grow, and the item held. So is one by a robot that ended and that no commit
// before claimed, one by a robot in a person's own commit, and an attempt or an intent in another person's name
// or no person's (state.Unclaimed), unless more than 50,000 commits came at once, whose ends fit each other, and no
// keys are listed: of these only the ends are compared. A new item is as the start of its first workflow
// leaves it, in no person's own commit, or came back from a deposit by a Bagpipe: one of another kind was made up, and is
// held. A branch that asks to be joined brings none back from a deposit without a signature.
//
// Guard is the ledger's Gate: nothing of this engine happens to an item that was touched
// and not yet looked at. A run looks at its start and whenever the branch moves; a
// command that writes looks first, and leaves to the run what is more than fewArrivals
// items besides its own. .bagpipe/checked holds the commit up to which all has been looked
// at; an older one costs time only. Of a long window several goroutines look at the
// commits ahead of the verdicts. Without the file, the newest commit by a Bagpipe on
// the first-parent line is taken for it.
//
// # Locks
//
// Guard.turn is held while commits are looked at and answered, by one goroutine at a time.
// Guard.mu, taken after turn, guards the lists; no commit is made while mu is held.
package guard
