// Package feed owns the activity feeds: what of the history concerns whom, in words.
//
// It must not know who may read a feed, nor what a transition means. Package audience says
// what is an activity and who gets it; the history is the running list of posts.
//
// A cycle does three things, under the lock of the folder, which the processes of one host
// share: it turns the commits since the last cycle into posts, looking up the item's label and
// parent as of each commit; it lets workers take the posts part by part, and write for each
// its text in every format; and it drops what is too old. Of a long history most posts would be
// dropped as soon as they have their texts: they are dropped before. A post belongs to one of 64 parts, by
// the FNV-1a sum of its poster. Feeds holds of each post what is needed to find it; its lock is
// held for a cycle, and for an answer. Workers share nothing that changes: each has a part, with
// the files and the records of that part, for itself.
//
// # The files, in .bagpipe/feeds
//
// They can be rebuilt from the history, and are when they are damaged, or of another format.
// They are not synced: what a crash of the machine tears is found by the sums and the cursors.
//
//	turn             how often the lock was taken
//	now              "3 KEY": the version of the format, and the folder that counts
//	KEY/audiences    frames: lists of feeds that have a post together
//	KEY/posts        frames: the posts of the commits up to one
//	KEY/bodies       what the posts say, one after the other
//	KEY/part-NN      frames: the entries of one part
//	KEY/text-NN      the texts of these entries, one after the other
//
// A frame is the length of its payload and its CRC-32C, both of four bytes, low byte first, and
// the payload. Numbers in payloads are varints, as encoding/binary has them; texts have their
// length before them. A last frame that is not whole is cut off.
//
//	audiences    turn, names and sets before, JSON {"names": [FEED, …], "sets": [[NAME'S NUMBER, …], …]}: what comes to both lists
//	posts        turn, from, next, commit, JSON [Pending, …], count, and of each post: sequence less
//	             the one before, part (+64: it is listed no more), seconds since 1970
//	             less those before, audience's number, place in bodies less the end of the one before, bytes there
//	part-NN      turn, from, through, milliseconds since 1970, place in text-NN, count, and of each entry:
//	             sequence less the one before, 2 x bytes in text-NN (+1: no template could be used)
//	bodies       CRC-32C, id, poster, collection, app and type of the post, JSON of its data
//	text-NN      CRC-32C, the text in each format, in the order of formats; or the error
//
// The post in the feeds of its audience is one entry each: an entry costs no byte of its own.
// Cursor and entries are one frame, so that each post is once in each feed, whatever is killed.
// A post's number is its place in the list. from is where the writer of a frame stood: what
// frames of a lower turn have beyond it does not count, and no more does a frame of a lower turn
// that comes later; both were written by whoever had lost the lock.
//
// What is dropped goes when a new folder is written without it, and now names that.
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
