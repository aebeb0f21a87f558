// Package confined runs this program again as a process with limits, for decoders that
// foreign bytes may exhaust: a file of 78 bytes can ask for 7 GB, which no recover catches.
//
// It owns the bounds of such a process: memory, written files, its environment, its end.
// It must not know what is decoded. A Cmd belongs to the goroutine that starts it.
//
// The rules are:
//
//   - the process is this program again, told by one variable of its environment what to
//     do; it gets a standard input, standard error, the files it is given, and nothing else;
//   - it bounds itself by Limit before it reads a byte;
//   - it ends when its standard input does, so none outlives its parent.
package confined
