// Package fault owns the kinds of errors that callers branch on, and the remedies that
// errors and reasons carry: what a person, or a program for one, can do next.
//
// It must not know how a remedy is put into words. The command line words a remedy as
// shell text, a page as a button. No text of the engine holds a command.
//
// Errors and remedies are values and never change; no lock guards them.
package fault
