// Package handover hands a digest to a program or to an address that people named.
//
// It owns how either is called and what of its answer an error repeats. It must not know
// what a digest says, nor whom it is for. It has no state.
package handover
