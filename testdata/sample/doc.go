// Package sample makes the inputs that Bagpipe's demo, tests and trials take in:
// good ones (folders, archives, bags) of the material in testdata/content, and
// bad ones that break one rule each. It needs nothing but Go.
//
// It owns what each sample is called and what is in it. It must not know items,
// steps or workspaces. It has no state; Make may be called from several
// goroutines for different paths. A sample's bytes are the same at every call,
// its modification times too.
package sample
