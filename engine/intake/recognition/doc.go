// Package recognition asks the rules in force what a drop is, and what becomes of it: its
// kind, collection, workflow, lane, and the steps that its collection does not ask for.
//
// It owns the answer to one drop. It must not know how the drop came or how its item is
// registered: the inbox and the children of items ask alike. The rules themselves are
// engine/recognise's.
//
// A Recogniser may be used by several goroutines; a lock guards the loose sets it
// remembers.
package recognition
