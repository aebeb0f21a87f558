// Package deflate decodes deflate streams (RFC 1951): whole ones between slices (Whole), and
// streams of any length from a reader (Reader).
//
// It owns the decoder of the store's objects and of archives. A library's decoder would do,
// if it were not slower in both: with klauspost/compress, Reset for each stream, a cold scan
// of 100,000 items takes 1.3 times the processor's time, and unpacking a zip 1.6 times (8 KB
// files) to 2.0 times (64 MB files). The package must not know where the bytes come from,
// the wrapping of a stream (zlib, gzip, zip) nor its check sums; those belong to its users.
//
// The rules are:
//
//   - input and output are slices, and the bits of the input stand in one register
//     that is filled eight bytes at a time: a symbol costs no call and no copy into
//     a window of its own;
//   - one look in a table tells the symbol, its extra bits and its length together;
//     longer codes go on in a second table;
//   - near the end of the input the same steps are done one by one, of zeros behind
//     the end, and the use of bits that were not there is found afterwards;
//   - a code that is over-subscribed, or incomplete in a way that zlib refuses, is
//     an error, and so is a distance beyond the output so far.
//
// A decoder is one goroutine's and holds tables of some 50 KB; those of Whole are pooled.
package deflate
