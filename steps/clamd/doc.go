// Package clamd asks a clamd whether bytes hold a virus.
//
// It owns clamd's protocol, INSTREAM, with its limits in size and time. It must not know
// items or what follows from an answer. A Client may be used by several goroutines.
//
// The rules are:
//
//   - clean is what clamd says is clean, word by word; anything else that is not FOUND is
//     not-scanned, with its reason: too large, too slow, an error, nonsense;
//   - what clamd says its limits made it leave out is not-scanned, and a clamd that does not
//     say so (Hides) makes nothing clean;
//   - a file beyond 2 GiB is not sent, as clamd's counters end there.
package clamd
