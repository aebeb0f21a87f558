// Package bagtool is the tool for bags and archives: the commands that need no workspace.
//
// It owns their grammar, words and JSON. It must not know items, or write into a workspace;
// of one around it reads only where files may be fetched from. It has no state.
package bagtool
