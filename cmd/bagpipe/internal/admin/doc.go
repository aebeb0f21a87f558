// Package admin is what whoever runs a workspace needs beside its daily commands.
//
// It owns the grammar, words and JSON of those commands. It must not decide anything: it
// asks a room of the engine, and prints. It has no state.
package admin
