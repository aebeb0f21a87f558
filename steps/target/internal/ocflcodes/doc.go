// Package ocflcodes owns what OCFL's validation codes say of inventories, objects and storage roots
// beyond what the library that validates them finds, or where it names another code. It reads the
// JSON as it stands, so that one mistake hides no other.
//
// It must not know targets, nor read a content: digests are the library's. It has no state.
package ocflcodes

// Fault is one thing wrong, with its code: E050, W003.
type Fault struct {
	Code, Text string
}

// faults are those found so far.
type faults []Fault

func (f *faults) add(code, text string) { *f = append(*f, Fault{code, text}) }
