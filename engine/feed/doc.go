// Package feed owns the activity feeds: what of the history concerns whom, in words.
//
// It must not know who may read a feed, nor what a transition means. Package audience says
// what is an activity and who gets it; the history is the running list of posts.
//
// A cycle does three things, under the lock of the folder, which the processes of one host
// share: it turns the commits since the last cycle into posts, looking up the item's label and
// parent as of each commit; it lets workers take the posts part by part, and write for each
// the feeds that have it, with its text in every format; and it drops what is too old. A
// post belongs to one of 64 parts, by the FNV-1a sum of its poster. Feeds holds what the files
// have; its lock is held for a cycle, and for an answer.
//
// # The files, in .bagpipe/feeds
//
// They can be rebuilt from the history, and are when they are damaged. Each is lines of a
// CRC-32C, a blank and JSON; a last line that is not whole is cut off.
//
//	turn        how often the lock was taken
//	posts       {"through": COMMIT, "turn": N, "posts": [Post, …]}   the posts of the commits up to one
//	part-NN     {"through": SEQUENCE, "turn": N, "entries": [Entry, …]}
//
// A line of a turn lower than one before it was written by whoever had lost the lock, and does
// not count.
//
// Cursor and entries are one line, so that each post is once in each feed, whatever is
// killed. A post's number is its place in the list.
//
// # Posts of people and programs
//
//	posts/YYYY/MM/KEY.json    {"schema": 1, "type", "collection", "app", "data", "by"}    committed
//
// # Templates
//
// feeds/templates/bagpipe/accession/failed.FORMAT.tmpl for the type bagpipe.accession.failed, else
// bagpipe/failed, else bagpipe/generic; FORMAT is text, html or atom. They are Go templates of
// the post's data; html and atom escape what is put in. They come by a push. One that cannot
// be used is passed over, and the next in line serves.
package feed
