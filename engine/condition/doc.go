// Package condition asks conditions of an item's JSON records.
//
// It owns the comparison of what stands at a path with constants, and its two spellings:
// the text of a named queue (Parse), and the keys of a workflow's when: (Keys). It must
// not know items, queues or files: a Values gives what stands at a path. It is pure; a
// Where may be used by several goroutines.
//
// # The text
//
// A condition is comparisons joined by and, or, not and parentheses; and binds closer
// than or.
//
//	PATH = VALUE     it is VALUE; of a list, one member is. Also != < <= > >=
//	PATH ~ PATTERN   a text that fits: see Patterns in docs/reference.md
//	PATH in (V, V)   it is one of these
//	PATH exists      there is something that is not null; also PATH alone
//
// A path leads into manifest.json, or, after execution., into execution.json: names
// with dots between them, a number for a place in a list, # for its length, \. for a
// dot in a name. A value is a number, text (in quotes if it is not one word), true,
// false, a date (2026-11-20, or with a time), or now, now-30d, now+12h (s, m, h, d,
// w, y). An absent value fits nothing but !=. A text that is a number, or a date, is
// compared as one where the value is one. Below quality the dots of a level need no \.,
// and what cannot stand there is refused.
//
// # The keys
//
// They compare exactly: a text is no number, and of a list a member is compared by
// equals, differs, in and notIn alone.
package condition
