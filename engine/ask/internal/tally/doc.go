// Package tally keeps, of each item, what facets count, so that a million items are counted and
// narrowed in some hundredths of a second.
//
// It owns columns: an item has, in each, a set of values; equal sets have one number, so an
// item is a row of numbers, and what lets an item through is told of each set once. It must
// not know what a value means, nor how an index is kept: a source tells which of its pages
// changed, and what an item has.
//
// A Table follows its source when it is asked: what changed since the last question is looked
// at, and nothing else. Its lock lets several questions be answered side by side.
package tally
