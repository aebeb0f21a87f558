// Package screen is where commands print: tables, JSON, progress and the words of counts
// and times, and the codes with which the program ends.
//
// It owns the layout on the terminal. It must not know the engine, or decide anything.
// Standard output is data, standard error is talk. Output guards its error by a lock;
// a Meter belongs to one goroutine.
package screen
