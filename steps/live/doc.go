// Package live owns robots that live: programs that are started once and given item after
// item, so that what takes long to load is loaded once.
//
// It must not know the engine: it is given a steps.Call and answers as a steps.Robot does.
//
// One goroutine runs each program, and one each line of items that it was given. The lock of
// Instances guards which programs there are and what waits for them; the lock of an
// instance guards what it was asked.
//
// # The protocol
//
// JSON-RPC 2.0, one message a line, on standard input and standard output; standard error
// is the log of the steps under way. A line is at most 8 MiB long. The engine asks:
//
//	initialize   {"protocol": 1, "step", "with"}     answered {"name", "version", "capabilities"}
//	process      one item; params of a process are those of type item
//	reconfigure  {"with"}: the parameters from now on; error -32601: the program is replaced
//	shutdown     the program ends; what goes on 5 s later is killed
//
// and tells {"method": "cancel", "params": {"id": N}}: request N is given up. It is to be
// answered all the same, within 5 s, or the program is killed. With batch, a line holds an
// array of up to so many process requests; each is answered by a line of its own.
//
// A process is answered by a result, which has the form of result.json, or by an error
// whose code is a robot's exit code: 65 content failure, 69 not available, 75 try later, 77
// skipped, any other a system failure. Meanwhile the program may tell
//
//	{"jsonrpc": "2.0", "method": "progress", "params": {"id": N, "percent": 40, "note": "page 12"}}
//
// What a program does beyond that ends it: a line that is no message, an answer to what was
// not asked or is answered, a line that is too long. So does its death. The items it had
// are given to another instance; an item at which three of them ended fails. So is one ended,
// once its items are answered, of whose last Window items Failures failed.
package live
