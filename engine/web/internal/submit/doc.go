// Package submit owns submissions: what programs send to become an item, under a key of their
// own.
//
// It must not know HTTP, nor what becomes of an item. A submission that came lies in
// .bagpipe/submissions/DIGEST until it is ended, and may be lost with that folder: it was not
// acknowledged. The item keeps the key as an identifier, by which the end of a submission that
// comes again finds it, also after a crash.
//
// A lock for each key keeps two who send one submission apart.
package submit
