// Package targettest owns the suite that every kind and layout of target passes.
//
// It must not know which target it is given, nor what is behind it: damage is done to files
// by who calls it.
package targettest
