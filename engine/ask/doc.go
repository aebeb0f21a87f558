// Package ask answers what people ask of a workspace: items, queues, why a step waits,
// failures, statistics, one item, the history, definitions and rules.
//
// It owns the questions and the words of the answers. It writes nothing, and must not
// know how an answer is shown or how to act: where a person can help, an answer carries
// what would help as a value. Definitions, Drops, History and Resolve read the records
// alone; every other answer is asked of a loaded index.
//
// Answers may be used by several goroutines; they hold no lock of their own.
package ask
