// Package deflate decodes deflate streams (RFC 1951) between slices.
//
// It owns the decoder that archives are unpacked with and the store's objects are
// read with: the libraries' decoders are about two thirds as fast as zlib, and both
// uses are little else. It must not know where the bytes come from, what is wrapped
// around a stream (zlib, gzip, zip) nor its check sums; those belong to its users.
//
// The rules are:
//
//   - input and output are slices, and the bits of the input stand in one register
//     that is filled eight bytes at a time: a symbol costs no call and no copy into
//     a window of its own;
//   - one look in a table tells the symbol, its extra bits and its length together;
//     longer codes go on in a second table;
//   - near the end of the input the same steps are done one by one, of zeros behind
//     the end, and that bits were used which were not there is found afterwards;
//   - a code that is over-subscribed, or incomplete in a way that zlib refuses, is
//     an error, and so is a distance beyond the output so far.
//
// A Decoder is one goroutine's and holds tables of some 50 KB; it should be kept.
package deflate
