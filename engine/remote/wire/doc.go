// Package wire owns what engine and workers say to each other: the messages, their limits, and
// the names of subjects and paths.
//
// It must not know NATS, HTTP, Git, files or clocks: it turns values into bytes and back. It
// keeps no state, and no lock guards it.
//
// # The exchange
//
//	hello    worker → engine   who I am, and the robots I offer                  → Welcome
//	offer    stream            a step is ready; one message, in the class's queue
//	claim    worker → engine   I have an offer and a free slot                   → Grant
//	beat     worker → engine   these attempts run here                           → Orders
//	call     worker → engine   over HTTPS: what the robot is given, and its files
//	end      worker → engine   how the robot ended                               → Taken
//
// A grant carries the call where that is small, files and all. An end that is small is a message, else it goes over HTTPS.
//
// A class is a queue of offers: the steps that want one robot on workers with the same labels
// and name. The engine tells each worker which classes it may pull from.
//
// An attempt is named by item, workflow, step and key, and fenced by its nonce: the engine
// refuses whatever names an attempt that is not the current one, or lacks its nonce.
//
// # Form
//
// Messages are JSON objects. Each holds "v", the protocol's number; a message of a newer
// protocol is refused, unknown keys are ignored. None is larger than MaxMessage on NATS. Paths
// are percent-encoded as layout.EncodePath does.
package wire
