// Package roots reads catalogs/NAME.yaml: which folders are catalogued where they are.
//
// It owns that file's form. It must not know what lies in the folders, nor Git or the engine.
// A Catalog does not change once it is read.
//
//	schema: 1
//	name: scans              # as the file's name
//	root: /mnt/scans         # a full path
//	collection: default      # of its items
//	workflow: accession      # their workflow; default: as the rules and the collection say
//	gone: 10%                # so much of the entries may be gone in one scan unasked
//	trust: [size, mtime]     # where inodes and change times prove nothing, as on network mounts
package roots
