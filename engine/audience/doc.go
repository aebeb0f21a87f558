// Package audience says what of the history is an activity, and whom it concerns: the files
// below feeds/.
//
// It owns their formats and the choice of recipients. It must not know commits, nor how
// feeds are kept. A Book does not change; it may be used by several goroutines.
//
// feeds/posts.yaml:
//
//	schema: 1
//	most: 5000                  # of activities get their feeds at a time; all
//	activities:                 # without the file: what arrives, what fails, what people decide and say
//	  - {to: [failed], workflow: accession, step: ocr, as: ocr-failed}
//	  - {to: [completed], by: people}   # or by: robots
//
// to names statuses of steps, registered for an item's arrival, hold, release and note; a key
// that is left out fits all. as is the last word of the activity's type, else the status.
//
// feeds/people/NAME.yaml:
//
//	schema: 1
//	name: Ada Keeper
//	addresses: [ada@example.org]    # of the commits
//	follows: [bob]                  # names of people, or addresses
//	private: true                   # nothing of this person's is posted
//	optOut: [{collection: maps, app: accession, type: bagpipe.accession.failed, poster: bob}]
//
// feeds/collections/NAME.yaml:
//
//	schema: 1
//	members: [ada]                  # whose feeds have its activities; with members, only they see it
//	optOut: [{app: accession}]      # of the collection's own feed
//
// An opt-out holds for what fits all its keys.
package audience
