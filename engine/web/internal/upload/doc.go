// Package upload owns files on their way into an inbox: those of a form, and those of tus
// 1.0.0, which can be resumed.
//
// It must not know what becomes of a drop. It answers tus through tusd's handler; where the
// bytes lie is its own.
//
// What is sent for one drop lies in a set, a hidden folder in the collection's inbox, which no
// scan sees:
//
//	inbox/COLLECTION/.uploading-SET/parts/ID       the bytes so far, of tus
//	inbox/COLLECTION/.uploading-SET/parts/ID.info  what the file is; stays until the set does
//	inbox/COLLECTION/.uploading-SET/drop/…         files that are whole, where they belong
//
// When all files of a set are whole, each is renamed from parts to drop, drop is synced, and
// renamed into the inbox. A crash before the last rename leaves a set that can be resumed;
// after it, parts whose bytes are gone, which counts as sent. Sets in which nothing moved for
// a day are removed.
//
// One lock guards the making, publishing and removing of sets. tusd's locks keep two writers
// from one part.
package upload
