// Command bagpipe is the program: one file per command, each of which parses,
// calls one method of the engine, and prints.
//
// It owns words and layout on the terminal, signals and exit codes. It must not
// make decisions. Standard output is data, standard error is talk.
package main
