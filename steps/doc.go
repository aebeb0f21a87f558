// Package steps owns the step contract and the built-in robots, one file each.
//
// It must not know the engine: a robot is given one Call, works in its scratch
// folder, and answers with a Result or an error. It has no state; a Robot may be
// called from several goroutines at once, for different items.
//
// # The contract of a robot
//
// Idempotent: run twice, or again after half a run, it gives the same item. It
// reads the item's folders and writes only below Call.Scratch, which is empty at
// first and is on the item's own file system. What shall stay is named in
// Result.Outputs; the engine publishes it by rename and syncs it, and only then
// commits the transition. A robot never writes into source/ or content/.
//
// Outputs below derived/ that come with a Content failure are published too: the
// report says what is wrong.
//
// Children are items that the step makes of this one: Result.Children names files and
// folders in scratch, each of which becomes the source of an item of its own, as if it
// had been dropped. Their names are the robot's to choose, and are what makes a child
// the same when the step runs again: it is not made twice. They are registered once
// the robot has ended, before the transition is committed.
//
// An error is the step's failure. A *Failure says whose it is: Content (the
// producer must fix what was dropped) or System (the operator must fix the
// machine; retrying may help). Any other error is a System failure. An *Unavailable
// says that the robot's program or service is not there. A *Later
// asks to be called again after a while and costs no retry. When ctx ends the
// robot stops soon and returns ctx's error; that is recorded by whoever ended it.
//
// # The command robot
//
// A step with command: runs that program in its scratch folder, in a process
// group of its own. Standard input is one JSON object:
//
//	{"execution": {…}, "item": "ID", "manifest": {…}, "step": "NAME", "with": {…}, "workflow": "NAME.1"}
//
// Environment: BAGPIPE_ITEM, BAGPIPE_LABEL, BAGPIPE_COLLECTION,
// BAGPIPE_WORKFLOW, BAGPIPE_STEP, BAGPIPE_ATTEMPT; the folders BAGPIPE_ITEM_DIR,
// BAGPIPE_SOURCE, BAGPIPE_CONTENT, BAGPIPE_DERIVED, BAGPIPE_SCRATCH (also the
// working folder); the files BAGPIPE_INVENTORY (may be absent),
// BAGPIPE_RESULT and BAGPIPE_PROGRESS. Standard output and standard error become the step's log.
//
// A program may tell how far it has come by appending lines to the file at
// BAGPIPE_PROGRESS, each PERCENT% NOTE, or NOTE alone:
//
//	echo "40% page 12 of 30" >>"$BAGPIPE_PROGRESS"
//
// The last line with a line end counts; only the file's last 4 KiB are read, and
// only when someone looks and at the attempt's end, whose record keeps it. PERCENT
// is 0 to 100, what is behind its point is dropped; of NOTE at most 200 bytes are
// kept. A file, as it needs no reader to be there, blocks no one, and works from any
// child of the program and through a container's mount.
//
// Exit codes: 0 completed; 65 content failure; 69 not available (so is a program
// that is not there); 75 try later; 77 skipped; anything else, and death by a
// signal, a system failure. Milestones are also taken with 65. The last line the
// program printed is the message, unless result.json gives one. result.json, at
// BAGPIPE_RESULT, is optional:
//
//	{
//	  "status": "completed" | "skipped",
//	  "message": "TEXT",
//	  "metadata": {…},                  merged into the manifest's metadata
//	  "milestones": ["NAME"],
//	  "outputs": {"FILE-OR-FOLDER": "derived/STEP/…" | "content"},
//	  "children": {"NAME": {"collection", "label", "lane", "metadata", "workflow"}}
//	}
//
// Outputs are named relative to the scratch folder; without "outputs", a folder
// named derived in it is published as derived/STEP. result.json that is damaged,
// names something outside scratch, or contradicts the exit code is a system
// failure.
//
// A folder named children in the scratch folder holds the children, each a file or a
// folder directly in it; its name is the child's. "children" may say more of any of
// them, its NAME being percent-encoded (layout.EncodePath), and may name none that is
// not there. What it does not say is decided as for a drop in the parent's collection,
// but for the lane, which is the parent's. Where Call.Children is given the program may tell
// of them while it runs: on its file 3, {"name": NAME, …} a line (ParseChild), or by
// renaming them into the folder children.ready of the scratch folder, where .NAME.json may
// say more of NAME (ReadyChild) and no other name begins with a dot when the program ends.
// Links and special files are a system failure, here as in outputs. A step that is skipped, or ends with another code than
// 0, has no children.
package steps
