// Command bagpipe is the program: a file for each family of commands, each of which parses,
// calls one method of the engine, and prints.
//
// It owns the grammar of the command line, signals, and which exit code a command ends with;
// how it is laid out is internal/screen's, and bags and archives are internal/bagtool's. It
// must not make decisions.
package main
