// Command bench measures what a step costs, with the built program, from outside.
//
// It prints fourteen tables:
//
//	no-op steps  a workflow of five steps of the built-in robot noop over 1,000,
//	             10,000 and 100,000 items, -j 2: both commits of each step durable,
//	             until the program has ended and the item folders have caught up.
//	             Steps and commits a second; time an item against the smallest; the
//	             processor's time a step; the most memory.
//	commands     a workflow of one step command: ["true"] over 2,000 items, beside a
//	             bare runner in Go that makes a scratch folder, writes a log file,
//	             hands over the same bytes on standard input and starts the same
//	             program, two at a time, without a commit; and beside xargs -P2, GNU
//	             parallel and Snakemake where they are.
//	robots       a step that is a robot in Python which does nothing, over 10,000 items (or as
//	             many as -robots says): started once for each, and with persistent: true.
//	latency      from the rename that drops a file into an inbox to the commit that
//	             begins its first step, under run --watch.
//	inbox        10,000 folders of ten files of 4 KiB, from the start of run until all
//	             are registered and it has ended, beside the two renames of each and
//	             one sync; and what run --watch takes of a core while 100,000 files
//	             wait.
//	accession    the shipped workflow from inbox/ to validated deposits: 1,000 and
//	             10,000 drops of two small files, one of 50,000 files, one of 2 GiB;
//	             -j 1, 2, 8 and 16, on the disk and on tmpfs. Items and MB a second,
//	             the processor's time, bytes read and written (/proc/PID/io), what each
//	             robot took, calls of the system (strace, where it is), beside the
//	             script that -peer names (else shared/peers/accession.py beside the
//	             repository) and the floor: the same files copied once by
//	             16 goroutines, and one sync.
//	feeds        all feeds of 100,000 posts to 50 collections of 40 members, in three
//	             formats, with one processor and with two, beside git log printing the
//	             trailers of the same commits; 200 entries shown.
//	schedules    what 10,000 schedules of which none is due take of a processor under
//	             run --watch; how late 200 are fired that are due within 20 s.
//	fixity       400 bags of 1 MiB in the store checked by a schedule, beside xargs -P2
//	             sha512sum on the same files; and with a rate.
//	exports      2,000 items in each form of export, and one item of 100,000 files, with the
//	             most memory.
//	sites        100,000 items at two sites (or as many as -synced says), a tenth of them held
//	             at either, a tenth of these at both: a sync that joins them, beside a fetch and
//	             a push by git of the same commits; one with nothing new; and the audit of that
//	             history beside git fsck --full.
//	pushes       2,000 items under run --watch that syncs every second, beside one that does not;
//	             and 50 people who push 20 times each to for/ meanwhile: how they are answered.
//	old          1,000,000 items (or as many as -old says): an anchor, a receipt, and the first
//	             command where nine tenths are retired, beside a workspace that never had these.
//	catalogs     1,000,000 empty files (or as many as -files says), twenty in a folder, catalogued
//	             by rules that take none of them, and scanned again, deep, shallow and with 100
//	             folders changed, beside find -printf; bytes of history and memory. A twentieth
//	             as many become items by the shipped rules, beside sha512sum.
//
// Rounds are interleaved and medians printed. Each table names its targets.
//
// It owns its workspaces, its peers' command lines and the tables. It must not
// import the engine: what it measures is the program as people start it.
package main
