// Package layout spells every path of a workspace and every name that stands
// in one, and is the specification of the formats that share them.
//
// It owns identifiers, checked names, checked relative paths, the fan-out of
// items, percent-encoding of foreign names, and the strict reading of YAML.
// It must not know anything else of Bagpipe; everything may import it.
// It has no state and needs no lock.
//
// # The workspace
//
//	WORKSPACE/
//	  .git/                         bare repository
//	  bagpipe.yaml                  settings
//	  workflows/NAME.yaml           workflow definitions
//	  workflows/pinned/DIGEST.yaml  definitions as started with, unchanged for good
//	  rules/NAME.yaml               recognition rules
//	  items/3/f/a/9/ID/             one work item (ItemDir)
//	  retired/3/f/a/9.json          where the records of retired items last stood (Retired)
//	  batches/NAME.json             batches of items (Batch)
//	  controls/steps.json           disabled steps and breakers
//	  controls/workspace.json       the workspace's mark (Workspace)
//	  inbox/COLLECTION/             drops
//	  intake/ID/                    taken, not yet committed
//	  rejected/COLLECTION/          drops that could not be admitted, with reasons
//	  .bagpipe/                     locks, scratch, caches: all rebuildable
//
// # Fan-out
//
// Sixteen-wide, four deep, by measurement: bytes of pack a transition writes (two
// records of 1 and 2 KiB, and the trees above them), alone, and in groups of 100.
// make bench prints the table, with times; its last column of items is in make soak.
//
//	items in the tree      1,000          100,000            1,000,000
//	                    alone  by 100    alone   by 100    alone  by 100
//	16 x 16 x 16 x 16   4,081  2,211     4,801    2,897    5,460  3,548
//	16 x 16 x 16        4,015  2,132     5,367    3,447    14,643 12,588
//	16, five deep       4,149  2,262     4,848    2,918     5,186  3,280
//	256 x 256          10,381  2,170    16,268    7,075    18,436  9,119
//	4096               29,290  2,524   126,827    6,077
//	flat               44,826  2,837  4,203,150 127,751
//
// # Identifiers
//
// An item's identifier (ItemID) is 14 random hexadecimal digits and a check
// digit, Luhn mod 16: one mistyped digit and nearly every swap of neighbours
// is found. An engine's identifier (EngineID) is 8 random hexadecimal digits.
// An attempt's key (AttemptKey) is N-ENGINE with N from 1; attempts order by N,
// then by ENGINE. An intent's key (IntentKey) is ULID-ENGINE: 10 characters of
// milliseconds since 1970 and 16 random ones in Crockford's base 32, so keys
// order by time.
//
// # Batches
//
//	{"by", "closed", "closedBy", "name", "opened", "schema": 1}
//
// A batch is made with its first item and names none; each of its items has its
// name as "batch" in manifest.json, fixed for good. "closed" and "closedBy" are
// there once nothing is added any more; that is never withdrawn.
//
// # The workspace's mark and its stores
//
// A workspace has a mark, 16 random hexadecimal digits, drawn by init and committed in
// controls/workspace.json, so that the mark outlives .bagpipe and a restore:
//
//	{"mark": "5c1e9a70d2b14f03", "schema": 1}
//
// A workspace without the file, of an earlier version, draws its mark before the next
// deposit. bagpipe-store.json at the top of a store lists the marks of the workspaces
// that deposit there:
//
//	{"schema": 1, "workspaces": {"5c1e9a70d2b14f03": {"since": "2026-11-20T10:00:00Z"}}}
//
// The file is written before the first deposit of a workspace. A workspace that has
// deposited before waits where its mark is not listed. An empty file is a person's word
// that the folder is a store.
//
// # Retired items
//
// The records of a finished item may be taken out of the tip, with all files of its folder
// there. A line in retired/3/f/a/9.json, of all whose identifiers begin with these digits, says
// where they last stood: a commit that leads to the one that retires the item.
//
//	{
//	  "items": {
//	    "3fa9c0d2e1b7a45": "2b1c…40 digits… photos/scan 7"     COMMIT COLLECTION/LABEL
//	  },
//	  "schema": 1
//	}
//
// Where an item's records stand, its line says nothing. A file without items is removed. The
// bytes of a retired item stay where they are.
//
// # Children
//
// An item that a step of another item made says so in its manifest.json, for good:
//
//	"parent": {"generation": 1, "item": "3fa9c0d2e1b7a45", "name": "scan-7.tif",
//	           "step": "split", "workflow": "compound.1"}
//
// name is the child's among the children of that step, percent-encoded, and
// generation is 1 for the child of an item that has no parent itself. The parent's
// records do not list its children; the attempt that made them says how many they
// were. A child's identifier is not random (ChildID): made again, it is the same
// item.
//
// # What an item was recognised as
//
// Three members of manifest.json, none of them there when there is nothing to say:
//
//	"type": "satellite-scene",
//	"identifiers": {"product": "L1A0000117600"},
//	"recognition": {"rule": "satellite/gf1-pms", "tried": {"bags/folder": "no: no bagit.txt"}, "verdict": "yes"}
//
// "type" is the kind of object, a Name. "identifiers" are what people know it by, each
// under its kind; an item is found by them. "recognition" says which rule decided and
// what every rule said that was tried before; it is fixed for good, as the source is.
//
// # A later version
//
// A drop may become the next version of an item. Its manifest.json then has "version": 2,
// "since", when that was registered, and "source.drop", what the drop was called in
// intake/; inventory.json is gone until a step makes it anew. The workflow instances
// created at or after "since" are the version's. Milestones are the item's: the first time
// one was reached stands. The bytes of version N are in versions/N of the item's folder,
// with copies of its manifest.json and inventory.json, and
//
//	version.json    {"drop": ID, "item": ID, "schema": 1, "time": T, "version": N}
//
// which names the drop that replaced it. While versions/N is there for the N that
// manifest.json has, the drop is on its way, and nobody may begin a step of the item.
//
// # Names
//
// Collections, workflows, steps and lanes are Names: 1 to 64 characters of
// a-z A-Z 0-9 . _ -, beginning with a letter or digit. They stand in paths,
// trailers and command lines without quoting.
//
// # Foreign file names
//
// A name that is not UTF-8, or holds a control character or a percent sign, is
// percent-encoded in JSON (EncodePath, DecodePath): the bytes concerned become
// %XX, upper-case. Encoding and decoding round-trip for any bytes.
package layout
